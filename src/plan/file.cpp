// SPDX-License-Identifier: Apache-2.0
//
// The plan file: a fixed header, the JSON manifest, then aligned sections. Every byte is covered by a checksum or must be
// zero, so any cut or altered byte is noticed.
//
//   0  "HONEPLAN"            8 bytes
//   8  u32 format version, u32 Hone version (major << 16 | minor << 8 | patch)
//  16  u64 bytes of the manifest, u64 XXH3 of the manifest
//  32  u64 bytes of the file, u64 XXH3 of bytes 0..39
//  48  manifest; then each section at the next multiple of 64, zeros between
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include "base/checked.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/version.h"
#include "plan/json.h"
#include "plan/size.h"

namespace hone {
namespace {

constexpr char kMagic[8] = {'H', 'O', 'N', 'E', 'P', 'L', 'A', 'N'};
constexpr uint32_t kFormat = 1;
constexpr size_t kHeaderBytes = 48, kHashedHeader = 40;
constexpr size_t kPaysThreads = size_t{16} << 20;

struct Header {
  char magic[8];
  uint32_t format, version;
  uint64_t manifest_bytes, manifest_hash, file_bytes, header_hash;
};
static_assert(sizeof(Header) == kHeaderBytes);

struct Section {
  uint64_t offset, bytes, hash;
};

constexpr const char* kRebuild = "build the plan again from the ONNX model";

[[noreturn]] void damaged(const std::string& what) { throw Error("the plan is damaged: " + what, kRebuild); }

Header read_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    const bool foreign = bytes.size() >= 4 && std::memcmp(bytes.data(), "ftrt", 4) == 0;
    throw Error(foreign         ? "this is a plan of TensorRT, not of Hone"
                : bytes.empty() ? "the file is empty, not a Hone plan"
                                : "this is not a Hone plan",
                "plans are made with --onnx=<model> --saveEngine=<plan>; an ONNX model is given with --onnx");
  }
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (hash64(bytes.first(kHashedHeader)) != header.header_hash) damaged("its header does not match its checksum");
  if (header.format != kFormat)
    throw Error(fmt::format("the plan has format {}, this Hone reads format {}", header.format, kFormat), kRebuild);
  if (header.file_bytes != bytes.size())
    damaged(fmt::format("it has {} bytes instead of {}", bytes.size(), header.file_bytes));
  if (header.manifest_bytes > bytes.size() - kHeaderBytes) damaged("its manifest is longer than the file");
  return header;
}

void require_zeros(std::span<const std::byte> bytes) {
  for (const std::byte b : bytes)
    if (b != std::byte{0}) damaged("there is data between its sections");
}

/// On every core where that pays: one core hashes more slowly than memory can be read.
void require_hashes(const std::vector<Section>& sections, std::span<const std::byte> bytes) {
  std::atomic<size_t> next = 0, altered = sections.size();
  const auto check = [&] {
    for (size_t i = next++; i < sections.size(); i = next++)
      if (hash64(bytes.subspan(sections[i].offset, sections[i].bytes)) != sections[i].hash) altered = i;
  };
  {
    const size_t cores = bytes.size() < kPaysThreads ? 0 : std::thread::hardware_concurrency();
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < std::min(cores, sections.size()); ++i) threads.emplace_back(check);
    check();
  }
  if (altered < sections.size()) damaged(fmt::format("section {} does not match its checksum", altered.load()));
}

std::vector<Section> read_sections(const Json& manifest, std::span<const std::byte> bytes, uint64_t end) {
  std::vector<Section> sections;
  for (const Json& row : list_member(manifest, "sections")) {
    if (!row.is_array() || row.size() != 3 || !row[0].is_number_unsigned() || !row[1].is_number_unsigned() ||
        !row[2].is_number_unsigned())
      damaged("its table of sections cannot be read");
    const Section section{row[0].get<uint64_t>(), row[1].get<uint64_t>(), row[2].get<uint64_t>()};
    if (section.offset < end || section.offset - end >= kAlignment || section.offset % kAlignment != 0 ||
        section.offset > bytes.size() || section.bytes > bytes.size() - section.offset)
      damaged(fmt::format("section {} lies outside its place", sections.size()));
    require_zeros(bytes.subspan(end, section.offset - end));
    end = section.offset + section.bytes;
    sections.push_back(section);
  }
  if (end != bytes.size()) damaged("there is data behind its last section");
  require_hashes(sections, bytes);
  return sections;
}

/// Sections deduplicated by content; identical weights of several profiles are stored once.
class SectionWriter {
 public:
  int64_t add(const Blob& blob) {
    const uint64_t hash = hash64(blob.bytes());
    for (auto [at, end] = known_.equal_range(hash); at != end; ++at)
      if (std::ranges::equal(blobs_[at->second].bytes(), blob.bytes())) return static_cast<int64_t>(at->second);
    known_.emplace(hash, blobs_.size());
    blobs_.push_back(blob);
    hashes_.push_back(hash);
    return static_cast<int64_t>(blobs_.size()) - 1;
  }
  const std::vector<Blob>& blobs() const { return blobs_; }
  const std::vector<uint64_t>& hashes() const { return hashes_; }

 private:
  std::multimap<uint64_t, size_t> known_;
  std::vector<Blob> blobs_;
  std::vector<uint64_t> hashes_;
};

/// The table's size changes the offsets, which change the table's text: repeat until the length settles.
std::string manifest_text(Json manifest, const SectionWriter& sections) {
  const std::vector<Blob>& blobs = sections.blobs();
  size_t guess = 0;
  while (true) {
    Json table = Json::array();
    uint64_t end = kHeaderBytes + guess;
    for (size_t i = 0; i < blobs.size(); ++i) {
      const uint64_t offset = static_cast<uint64_t>(round_up(static_cast<int64_t>(end), kAlignment));
      table.push_back({offset, static_cast<uint64_t>(blobs[i].size()), sections.hashes()[i]});
      end = offset + blobs[i].size();
    }
    manifest["sections"] = std::move(table);
    std::string text = manifest.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() <= guess) return text + std::string(guess - text.size(), ' ');
    guess = text.size();
  }
}

/// The plan with nothing in its constants, kernels (the code of small ones holds weights too), portable part, and the weights of the
/// network that a refit begins with.
Plan without_weights(const Plan& plan) {
  Plan bare = plan;
  for (Tensor& constant : bare.constants) constant = Tensor(constant.dtype(), {0}, Blob());
  for (Blob& blob : bare.blobs) blob = Blob();
  bare.portable.reset();
  for (RefitConstant& constant : bare.refit->constants)
    if (!constant.name.empty() || constant.derived) constant.data.reset();
  bare.weights = WeightStorage::nowhere;
  return bare;
}

struct FileImage {
  Header header;
  std::string manifest;
  std::vector<Blob> blobs;
  std::vector<std::span<const std::byte>> pieces;  // header, manifest, (padding, section)*
};

void compose(const Plan& plan, FileImage& image) {
  static constexpr std::byte kZeros[kAlignment] = {};
  verify(plan);
  if (plan.weights == WeightStorage::not_in_file) return compose(without_weights(plan), image);
  SectionWriter sections;
  Json manifest = manifest_of(plan, [&](const Blob& blob) { return sections.add(blob); });
  image.blobs = sections.blobs();
  image.manifest = manifest_text(std::move(manifest), sections);
  image.pieces = {std::as_bytes(std::span(&image.header, 1)), std::as_bytes(std::span(image.manifest))};
  uint64_t end = kHeaderBytes + image.manifest.size();
  for (const Blob& blob : image.blobs) {
    const uint64_t offset = static_cast<uint64_t>(round_up(static_cast<int64_t>(end), kAlignment));
    image.pieces.push_back(std::span(kZeros).first(offset - end));
    image.pieces.push_back(blob.bytes());
    end = offset + blob.size();
  }
  Header& header = image.header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.format = kFormat;
  header.version = kVersionMajor << 16 | kVersionMinor << 8 | kVersionPatch;
  header.manifest_bytes = image.manifest.size();
  header.manifest_hash = hash64(image.manifest);
  header.file_bytes = end;
  header.header_hash = hash64(std::as_bytes(std::span(&header, 1)).first(kHashedHeader));
}

}  // namespace

std::vector<std::byte> save_plan(const Plan& plan) {
  FileImage image;
  compose(plan, image);
  std::vector<std::byte> bytes;
  bytes.reserve(image.header.file_bytes);
  for (const std::span<const std::byte> piece : image.pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

uint64_t plan_file_bytes(const Plan& plan) {
  FileImage image;
  compose(plan, image);
  return image.header.file_bytes;
}

void save_plan_file(const Plan& plan, const std::string& path) {
  FileImage image;
  compose(plan, image);
  write_file(path, image.pieces);
}

namespace {

/// Everything behind the header.
Plan read_body(const Blob& bytes, const Header& header) {
  const std::span<const std::byte> file = bytes.bytes();
  const std::span<const std::byte> manifest_bytes = file.subspan(kHeaderBytes, header.manifest_bytes);
  if (hash64(manifest_bytes) != header.manifest_hash) damaged("its manifest does not match its checksum");
  return with_note([] { return std::string("reading the plan"); },
                   [&] {
                     const Json manifest = parse_json(
                         {reinterpret_cast<const char*>(manifest_bytes.data()), manifest_bytes.size()}, "the manifest");
                     const std::vector<Section> sections =
                         read_sections(manifest, file, kHeaderBytes + header.manifest_bytes);
                     const auto owner = std::make_shared<const Blob>(bytes);
                     Plan plan = plan_of(manifest, [&](int64_t index) {
                       HONE_CHECK(index >= 0 && index < static_cast<int64_t>(sections.size()),
                                  "section {} of {} is named", index, sections.size());
                       const Section& section = sections[static_cast<size_t>(index)];
                       return Blob(owner, owner->bytes().subspan(section.offset, section.bytes));
                     });
                     verify(plan);
                     return plan;
                   });
}

}  // namespace

Plan load_plan(const Blob& bytes) {
  const Header header = read_header(bytes.bytes());
  try {
    return read_body(bytes, header);
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    if (!error.hint().empty()) throw;
    damaged(error.message());
  }
}

Plan load_plan_file(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return with_note([&] { return "loading " + path; }, [&] { return load_plan(Blob(file, file->bytes())); });
}

std::string plan_version(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return with_note([&] { return "loading " + path; },
                   [&] {
                     const uint32_t version = read_header(file->bytes()).version;
                     return fmt::format("{}.{}.{}", version >> 16, (version >> 8) & 0xff, version & 0xff);
                   });
}

}  // namespace hone
