// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/described_device.h"

#include "base/file.h"
#include "base/hash.h"

namespace hone {
namespace {

constexpr std::string_view kRuns = "nothing runs on a device that is known by its description alone";

class DescribedDevice final : public Device {
 public:
  explicit DescribedDevice(DeviceInfo info) : info_(std::move(info)) {}
  DeviceInfo info() const override { return info_; }
  void* allocate(size_t) override { throw Error(std::string(kRuns)); }
  void release(void*) noexcept override {}
  std::unique_ptr<Stream> stream() override { throw Error(std::string(kRuns)); }
  void copy(void*, const void*, size_t, Stream&) override { throw Error(std::string(kRuns)); }
  void fill(void*, std::byte, size_t, Stream&) override { throw Error(std::string(kRuns)); }
  std::unique_ptr<Recording> record(std::vector<Launch>) override { throw Error(std::string(kRuns)); }
  bool host_accessible() const override { return true; }

 private:
  DeviceInfo info_;
};

/// What writes a field's value into JSON, or reads it out of it.
struct Writer {
  Json& json;
  void text(const char* name, const std::string& value) { json[name] = value; }
  void integer(const char* name, int64_t value) { json[name] = value; }
  void integer(const char* name, int value) { json[name] = value; }
  void real(const char* name, double value) { json[name] = value; }
  void flag(const char* name, bool value) { json[name] = value ? 1 : 0; }
};

struct Reader {
  const Json& json;
  void text(const char* name, std::string& value) { value = text_member(json, name); }
  void integer(const char* name, int64_t& value) { value = integer_member(json, name); }
  void integer(const char* name, int& value) {
    const int64_t read = integer_member(json, name);
    HONE_CHECK(read >= 0 && read <= 1'000'000, "'{}' is {}, out of range", name, read);
    value = static_cast<int>(read);
  }
  void real(const char* name, double& value) { value = real_member(json, name); }
  void flag(const char* name, bool& value) { value = integer_member(json, name) != 0; }
};

/// What proposals and passes read; the rest is for reports.
template <typename Visitor, typename Info>
void visit(Info& info, Visitor&& fields) {
  fields.text("name", info.name);
  fields.text("architecture", info.architecture);
  fields.text("silicon", info.silicon);
  fields.integer("workers", info.workers);
  fields.integer("memoryBytes", info.memory_bytes);
  fields.integer("cacheBytes", info.cache_bytes);
  fields.integer("sharedCacheBytes", info.shared_cache_bytes);
  fields.integer("coreBytes", info.core_bytes);
  fields.flag("halfArithmetic", info.half_arithmetic);
  fields.flag("halfNetworks", info.half_networks);
  fields.flag("tf32Matmuls", info.tf32_matmuls);
  fields.flag("bf16Matmuls", info.bf16_matmuls);
  fields.flag("byteMatmuls", info.byte_matmuls);
  fields.flag("byteDots", info.byte_dots);
  fields.flag("codeProducts", info.code_products);
  fields.flag("float8Products", info.float8_products);
  fields.flag("quantizedWeights", info.quantized_weights);
  fields.flag("halfQuantizedWeights", info.half_quantized_weights);
  fields.real("f32Flops", info.rates.f32_flops);
  fields.real("memoryBytesPerSecond", info.rates.memory_bytes);
  fields.real("cacheBytesPerSecond", info.rates.cache_bytes);
  fields.real("launchMs", info.rates.launch_ms);
}

}  // namespace

std::string timing_key(const OpenDevice& device) {
  return fmt::format("{} | {}", device.device->info().key(), device.backend->versions());
}

std::string kind_of(const OpenDevice& device) { return hash_hex(timing_key(device)).substr(0, 12); }

Json describe_device(const OpenDevice& device) {
  Json json{{"backend", device.backend->name}, {"kind", kind_of(device)}, {"key", timing_key(device)}};
  const DeviceInfo info = device.device->info();
  Json fields;
  visit(info, Writer{fields});
  json["device"] = std::move(fields);
  return json;
}

OpenDevice described_device(const std::string& path) {
  const Json json = parse_json(read_file(path), path);
  return with_note([&] { return fmt::format("reading {}", path); },
                   [&] {
                     const std::string name = text_member(json, "backend");
                     const Backend* backend = find_backend(name);
                     if (backend == nullptr)
                       throw Error(fmt::format("this build of Hone has no backend {}", name),
                                   "use one that has it; it needs no such device");
                     DeviceInfo info;
                     visit(info, Reader{member(json, "device")});
                     OpenDevice device{backend, std::make_shared<DescribedDevice>(std::move(info))};
                     if (timing_key(device) != text_member(json, "key"))
                       throw Error(
                           fmt::format("the device is described by another version of Hone: as {}, which is {} here",
                                       text_member(json, "key"), timing_key(device)),
                           "describe it anew: hone problems --describe");
                     return device;
                   });
}

}  // namespace hone
