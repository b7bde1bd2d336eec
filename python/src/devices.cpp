// SPDX-License-Identifier: Apache-2.0
//
// Devices, memory, streams and events; memory of others by way of DLPack.
#include <nanobind/ndarray.h>

#include "binding.h"

namespace hone::python {
namespace {

Device open(const std::string& name, int workers, const std::vector<int>& cores,
            const std::optional<std::string>& instruction_set) {
  auto options = sized<hone_device_options>();
  options.workers = workers;
  options.cores = cores.data();
  options.core_count = cores.size();
  if (instruction_set) options.instruction_set = instruction_set->c_str();
  return Device::make(hone_device_create, name.c_str(), &options);
}

std::tuple<std::string, std::string, std::string, int, bool, int64_t, int64_t, int64_t, double, uint32_t> describe(
    const Device& device) {
  auto info = sized<hone_device_info>();
  check(hone_device_describe(device.get(), &info));
  return {info.kind,         info.name,        info.architecture, info.workers,   info.host_accessible != 0,
          info.memory_bytes, info.cache_bytes, info.core_bytes,   info.clock_ghz, info.multiplied_types};
}

std::tuple<double, double, double> measure(const Device& device) {
  auto ceilings = sized<hone_ceilings>();
  call(hone_device_measure, device.get(), &ceilings);
  return {ceilings.bytes_per_second, ceilings.f16_flops, ceilings.f32_flops};
}

/// Passes a stream's answer on to a callable, once.
void told(void* user, hone_status status) {
  const std::string failure = status == HONE_OK ? "" : last_failure();
  nb::gil_scoped_acquire acquire;
  const std::unique_ptr<nb::object> function(static_cast<nb::object*>(user));
  try {
    (*function)(static_cast<int>(status), text(failure.c_str()));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("a function that a stream of hone called");
  }
}

void call_behind(const Stream& stream, nb::object function) {
  auto kept = std::make_unique<nb::object>(std::move(function));
  call(hone_stream_call, stream.get(), told, static_cast<void*>(kept.get()));
  (void)kept.release();  // told() frees it
}

/// hone_dtype as DLPack's code and bits; no bits: DLPack has no such type that lies in whole bytes.
nb::dlpack::dtype dlpack_type(hone_dtype dtype) {
  constexpr uint8_t kInt = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kBool = 6;
  switch (dtype) {
    case HONE_F32: return {kFloat, 32, 1};
    case HONE_F16: return {kFloat, 16, 1};
    case HONE_BF16: return {kBfloat, 16, 1};
    case HONE_F64: return {kFloat, 64, 1};
    case HONE_I8: return {kInt, 8, 1};
    case HONE_U8: return {kUnsigned, 8, 1};
    case HONE_I16: return {kInt, 16, 1};
    case HONE_U16: return {kUnsigned, 16, 1};
    case HONE_I32: return {kInt, 32, 1};
    case HONE_U32: return {kUnsigned, 32, 1};
    case HONE_I64: return {kInt, 64, 1};
    case HONE_U64: return {kUnsigned, 64, 1};
    case HONE_BOOL: return {kBool, 8, 1};
    case HONE_F8E4M3FN: return {10, 8, 1};
    case HONE_F8E4M3FNUZ: return {11, 8, 1};
    case HONE_F8E5M2: return {12, 8, 1};
    case HONE_F8E5M2FNUZ: return {13, 8, 1};
    case HONE_F8E8M0: return {14, 8, 1};
    default: return {0, 0, 0};
  }
}

int hone_type(nb::dlpack::dtype type) {
  for (int dtype = HONE_F32; dtype <= HONE_MAP; ++dtype) {
    const nb::dlpack::dtype known = dlpack_type(static_cast<hone_dtype>(dtype));
    if (known.bits != 0 && known == type) return dtype;
  }
  throw Error("DLPack's type " + std::to_string(type.code) + " of " + std::to_string(type.bits) +
              " bits is none of Hone's\n  hint: convert the tensor");
}

/// Memory of somebody else's, kept alive.
struct Shared {
  nb::ndarray<nb::ro> array;
};

bool is_contiguous(const nb::ndarray<nb::ro>& array) {
  int64_t step = 1;
  for (size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != step) return array.size() == 0;
    step *= static_cast<int64_t>(array.shape(i));
  }
  return true;
}

std::vector<size_t> shape_of(const nb::ndarray<nb::ro>& array) {
  std::vector<size_t> shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(array.shape(i));
  return shape;
}

nb::object as_dlpack(uintptr_t address, int dtype, const std::vector<size_t>& shape, int device_type, int device_id,
                     nb::object owner) {
  const nb::dlpack::dtype type = dlpack_type(static_cast<hone_dtype>(dtype));
  if (type.bits == 0) throw Error("DLPack has no such element type\n  hint: convert the tensor");
  return nb::cast(nb::ndarray<nb::array_api>(reinterpret_cast<void*>(address), shape.size(), shape.data(), owner,
                                             nullptr, type, device_type, device_id));
}

void add_streams(nb::module_& module) {
  nb::class_<Stream>(module, "Stream", "A queue of work.")
      .def("__init__",
           [](Stream* self, const Device& device) {
             new (self) Stream(Stream::make(hone_stream_create, static_cast<const hone_device*>(device.get())));
           })
      .def_static(
          "from_native",
          [](const Device& device, uintptr_t native) {
            return Stream::make(hone_stream_create_from_native, static_cast<const hone_device*>(device.get()),
                                reinterpret_cast<void*>(native));
          },
          "A cudaStream_t of the caller's.")
      .def(
          "copy",
          [](const Stream& self, uintptr_t destination, uintptr_t source, size_t bytes) {
            call(hone_stream_copy, self.get(), reinterpret_cast<void*>(destination),
                 reinterpret_cast<const void*>(source), bytes);
          },
          "Between any two kinds of memory.")
      .def(
          "wait", [](const Stream& self, const Event& event) { call(hone_stream_wait, self.get(), event.get()); },
          "Later work starts behind the event.")
      .def(
          "synchronize", [](const Stream& self) { call(hone_stream_synchronize, self.get()); },
          "Waits until all work is done.")
      .def("call", call_behind, "Calls function(status, message) on another thread, behind the work so far.");

  nb::class_<Event>(module, "Event", "A place in a stream's work.")
      .def("__init__",
           [](Event* self, const Device& device) {
             new (self) Event(Event::make(hone_event_create, static_cast<const hone_device*>(device.get())));
           })
      .def(
          "record", [](const Event& self, const Stream& stream) { call(hone_event_record, self.get(), stream.get()); },
          "Behind the stream's work so far.")
      .def(
          "synchronize", [](const Event& self) { call(hone_event_synchronize, self.get()); }, "Waits for it.")
      .def(
          "query",
          [](const Event& self) {
            int passed = 0;
            check(hone_event_query(self.get(), &passed));
            return passed != 0;
          },
          "Whether it has been passed.")
      .def(
          "elapsed",
          [](const Event& self, const Event& begin) {
            double milliseconds = 0;
            check(hone_event_elapsed(begin.get(), self.get(), &milliseconds));
            return milliseconds;
          },
          "Milliseconds since an earlier event.");
}

}  // namespace

void add_devices(nb::module_& module) {
  nb::class_<Device>(module, "Device", "A processor or a GPU.")
      .def(
          "__init__",
          [](Device* self, const std::string& name, int workers, const std::vector<int>& cores,
             const std::optional<std::string>& isa) { new (self) Device(open(name, workers, cores, isa)); },
          nb::arg("name"), nb::arg("workers") = 0, nb::arg("cores") = std::vector<int>(),
          nb::arg("instruction_set").none() = nb::none())
      .def("describe", describe, "The members of hone_device_info, in their order.")
      .def("measure", measure, "The members of hone_ceilings, in their order.");

  nb::class_<Buffer>(module, "Buffer", "Memory.")
      .def("__init__",
           [](Buffer* self, const Device& device, int kind, size_t bytes) {
             new (self) Buffer(Buffer::make(hone_buffer_create, static_cast<const hone_device*>(device.get()),
                                            static_cast<hone_memory>(kind), bytes));
           })
      .def(
          "address", [](const Buffer& self) { return reinterpret_cast<uintptr_t>(hone_buffer_data(self.get())); },
          "Where it begins.");
  add_streams(module);

  nb::class_<Shared>(module, "Shared", "Memory of another package's tensor, which this object keeps.")
      .def_prop_ro(
          "address", [](const Shared& self) { return reinterpret_cast<uintptr_t>(self.array.data()); },
          "Where the first element lies.")
      .def_prop_ro(
          "dtype", [](const Shared& self) { return hone_type(self.array.dtype()); }, "As hone_dtype.")
      .def_prop_ro(
          "shape", [](const Shared& self) { return shape_of(self.array); }, "The sizes.")
      .def_prop_ro(
          "contiguous", [](const Shared& self) { return is_contiguous(self.array); }, "Whether without gaps.")
      .def_prop_ro(
          "device", [](const Shared& self) { return std::pair(self.array.device_type(), self.array.device_id()); },
          "DLPack's type and number of the device.");
  module.def(
      "share", [](nb::ndarray<nb::ro> array) { return Shared{std::move(array)}; }, nb::arg("capsule").noconvert(),
      "What __dlpack__() returned.");
  module.def("as_dlpack", as_dlpack, "An object with __dlpack__ and __dlpack_device__ for memory that `owner` keeps.");
}

}  // namespace hone::python
