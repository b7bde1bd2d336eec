// SPDX-License-Identifier: Apache-2.0
//
// In the place of NVRTC: CUDA source text becomes a shared library of the host, by the compiler that built this. After the
// preprocessor has been over it, what C++ does not know is written anew: inline assembly, shared memory whose size a launch says;
// and behind the text stands, for each kernel, a function that launches it.
#include <nvrtc.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

struct _nvrtcProgram {
  std::string source, log, code;
};

namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Where what opens at `at` closes; strings may hold brackets.
size_t end_of(const std::string& text, size_t at) {
  int depth = 0;
  for (bool quoted = false; at < text.size(); ++at) {
    if (text[at] == '"' && text[at - 1] != '\\') quoted = !quoted;
    if (quoted) continue;
    if (text[at] == '(' || text[at] == '[') ++depth;
    if ((text[at] == ')' || text[at] == ']') && --depth == 0) return at;
  }
  throw std::runtime_error("unbalanced brackets");
}

/// What separators outside of brackets and strings divide.
std::vector<std::string> divide(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted) depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (c == separator && depth == 0 && !quoted) parts.emplace_back();
    else parts.back() += c;
  }
  return parts;
}

/// "=f"(x), "r"(y) as calls of emulated::out and emulated::in.
std::string operands_of(const std::string& list, const char* kind) {
  std::string result;
  for (const std::string& operand : divide(list, ','))
    if (const size_t at = operand.find('('); at != std::string::npos)
      result += std::string(", emulated::") + kind + operand.substr(at);
  return result;
}

std::string call_of(const std::string& assembly) {
  std::vector<std::string> parts = divide(assembly, ':');
  parts.resize(4);
  const std::string operands = operands_of(parts[1], "out") + operands_of(parts[2], "in");
  return "[&] { static const emulated::Instruction& emulated_one = emulated::find_instruction(" + parts[0] +
         "); const emulated::Operand emulated_all[] = {emulated::Operand{}" + operands +
         "}; emulated_one.run(emulated_all + 1); }()";
}

std::string rewrite_assembly(const std::string& text) {
  static const std::regex kBegin(R"(\basm\s*(volatile)?\s*\()");
  std::string result;
  auto from = text.cbegin();
  for (std::smatch found; std::regex_search(from, text.cend(), found, kBegin);) {
    result.append(from, found[0].first);
    const auto open = static_cast<size_t>(found[0].second - text.cbegin()) - 1, close = end_of(text, open);
    result += call_of(text.substr(open + 1, close - open - 1));
    from = text.cbegin() + static_cast<std::ptrdiff_t>(close) + 1;
  }
  return result.append(from, text.cend());
}

std::string launchers(const std::string& text) {
  static const std::regex kCluster(R"(__cluster_dims__\s*\(([^()]*)\))");
  static const std::regex kKernel(R"(__global__[^{;]*?(\w+)\s*\((?=[^(){}]*\)\s*\{))");
  std::string result;
  for (std::sregex_iterator at(text.begin(), text.end(), kKernel), end; at != end; ++at) {
    const std::string head = (*at)[0], name = (*at)[1];
    std::smatch dims;
    const std::string blocks = std::regex_search(head, dims, kCluster) ? dims[1].str() : "1, 1, 1";
    result += "extern \"C\" __attribute__((visibility(\"default\"))) void emulate_" + name +
              "(const unsigned* shape, void** arguments, std::function<void()>& ready) { ready = "
              "emulated::launch(generated::" +
              name + ", shape, arguments, uint3{" + blocks + "}); }\n";
  }
  return result;
}

/// What "name[4][8]" declares of a type: a reference into the block's memory.
std::string declared(const std::string& type, const std::string& declarator) {
  static const std::regex kName(R"(^\s*(\w+)([^]*)$)");
  std::smatch parts;
  if (!std::regex_match(declarator, parts, kName)) throw std::runtime_error("shared memory of no name: " + declarator);
  const std::string name = parts[1];
  return "typedef " + type + " " + name + "_declared" + parts[2].str() + "; static const size_t " + name +
         "_place = emulated::place_declared(sizeof(" + name + "_declared)); " + name + "_declared& " + name +
         " = *reinterpret_cast<" + name + "_declared*>(emulated::own_shared() + " + name + "_place);";
}

/// Each block of a cluster has arrays of its own, where the others find them.
std::string place_arrays(const std::string& text) {
  static const std::regex kArrays(R"(__shared__\s+(?:alignas\([^)]*\)\s*)?(\w+)\s+([^;]*);)");
  std::string result;
  auto from = text.cbegin();
  for (std::sregex_iterator at(text.begin(), text.end(), kArrays), end; at != end; ++at) {
    result.append(from, text.cbegin() + at->position());
    from = text.cbegin() + at->position() + at->length();
    std::string declarator;
    int depth = 0;
    for (const char each : (*at)[2].str() + ",") {
      depth += each == '(' || each == '[' ? 1 : each == ')' || each == ']' ? -1 : 0;
      if (each != ',' || depth > 0) {
        declarator += each;
        continue;
      }
      result += declared((*at)[1], declarator);
      declarator.clear();
    }
  }
  return result.append(from, text.cend());
}

std::string host_text(const std::string& preprocessed) {
  static const std::regex kShared(R"(extern\s+__shared__\s+(\w+)\s+(\w+)\[\];)");
  const std::string sized =
      std::regex_replace(preprocessed, kShared, "$1* const $2 = reinterpret_cast<$1*>(emulated::own_shared());");
  return "#include \"" EMULATED_HEADER "\"\nnamespace generated {\n" + rewrite_assembly(place_arrays(sized)) + "\n}\n" +
         launchers(preprocessed);
}

/// A folder that goes with its owner.
struct Folder {
  std::string path = fs::temp_directory_path() / "hone-emulated-XXXXXX";
  Folder() {
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  ~Folder() { fs::remove_all(path); }
};

void compile(_nvrtcProgram& program, const std::string& architecture) {
  const Folder folder;
  const auto run = [&](const std::string& options) {
    return std::system((EMULATED_COMPILER " -w " + options + " 2>> " + folder.path + "/log").c_str()) == 0;
  };
  std::ofstream(folder.path + "/kernel.cpp") << program.source;
  if (run("-E -P -std=c++17 -D__CUDA_ARCH__=" + architecture + "0 " + folder.path + "/kernel.cpp -o " + folder.path +
          "/kernel.ii")) {
    std::ofstream(folder.path + "/host.cpp") << host_text(read(folder.path + "/kernel.ii"));
    // Hidden: what several kernels call alike must not be taken for one when they are loaded.
    if (run("-std=c++20 -O1 -ffp-contract=off -fvisibility=hidden -shared -fPIC " + folder.path + "/host.cpp -o " +
            folder.path + "/kernel.so"))
      program.code = read(folder.path + "/kernel.so");
  }
  program.log = read(folder.path + "/log");
}

}  // namespace

EXPORT nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13, *minor = 0;
  return NVRTC_SUCCESS;
}
EXPORT const char* nvrtcGetErrorString(nvrtcResult) { return "the host's compiler refuses it"; }
EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char*, int, const char* const*,
                                      const char* const*) {
  *program = new _nvrtcProgram{source, {}, {}};
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  std::string architecture;
  for (int i = 0; i < count; ++i)
    if (const std::string option = options[i]; option.starts_with("--gpu-architecture=sm_"))
      architecture = option.substr(22, 2);
  try {
    compile(*program, architecture);
  } catch (const std::exception& error) {
    program->log = error.what();
  }
  return program->code.empty() ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  *size = program->log.size();
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  program->log.copy(log, program->log.size());
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) {
  *size = sizeof(size_t) + program->code.size();
  return NVRTC_SUCCESS;
}
/// The driver is not told how large machine code is: it begins with that.
EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* code) {
  const size_t size = program->code.size();
  std::copy_n(reinterpret_cast<const char*>(&size), sizeof size, code);
  program->code.copy(code + sizeof size, size);
  return NVRTC_SUCCESS;
}
