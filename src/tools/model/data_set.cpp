// SPDX-License-Identifier: Apache-2.0
#include "tools/model/data_set.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/text.h"
#include "tools/files/npy.h"

namespace hone {
namespace {

constexpr std::string_view kForms =
    "give an .npz archive with an array for each input, samples along its first axis: numpy.savez('data.npz', "
    "input=array)";

bool is_data(const std::filesystem::path& path) { return path.extension() == ".npz" || path.extension() == ".npy"; }

std::vector<std::string> files_of(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.is_regular_file() && is_data(entry.path())) files.push_back(entry.path().string());
  if (files.empty())
    throw Error(fmt::format("the folder {} holds neither .npz nor .npy files", path), std::string(kForms));
  std::ranges::sort(files);
  return files;
}

NpyReader array_in(const MappedFile& file, const std::string& input, size_t inputs) {
  if (!file.path().ends_with(".npy")) return {file.bytes(), input};
  if (inputs != 1)
    throw Error(fmt::format("an .npy file is one array, and the network has {} inputs", inputs), std::string(kForms));
  return NpyReader(file.bytes());
}

/// The shape of a batch of such an array's samples.
Dims batch_shape(const Dims& array, const TensorType& input) {
  const Shape& shape = input.shape;
  bool fits = shape.rank() > 0 && array.size() == shape.rank();
  Dims dims = array;
  for (size_t axis = 0; fits && axis < dims.size(); ++axis) {
    const auto fixed = shape[axis].constant();
    if (axis == 0) dims[0] = fixed.value_or(1);
    else fits = !fixed || *fixed == dims[axis];
  }
  if (!fits)
    throw Error(
        fmt::format("samples of shape [{}] do not fit the input, which is {}", join_dims(array, ","), input.text()),
        "the first axis of an array counts samples, the others are those of the input");
  return dims;
}

/// Gives the memory of a mapping back, which would grow with what has been read; what is read again comes from the file again.
void forget(std::span<const std::byte> mapped) {
  if (!mapped.empty()) ::madvise(const_cast<std::byte*>(mapped.data()), mapped.size(), MADV_DONTNEED);
}

template <typename To>
void convert(const Tensor& from, std::span<std::byte> memory) {
  const std::span<To> to(reinterpret_cast<To*>(memory.data()), memory.size() / sizeof(To));
  for (size_t i = 0; i < to.size(); ++i) {
    const double value = from.real(static_cast<int64_t>(i));
    if constexpr (std::is_integral_v<To>)
      HONE_CHECK(value == std::trunc(value) && value >= static_cast<double>(std::numeric_limits<To>::min()) &&
                     value < static_cast<double>(std::numeric_limits<To>::max()) + 1,
                 "the value {} does not fit the input", value);
    if constexpr (std::is_arithmetic_v<To>) to[i] = static_cast<To>(value);
    else to[i] = To(static_cast<float>(value));
  }
}

}  // namespace

DataSet::DataSet(const std::string& path, const Graph& network) {
  for (const Value* input : network.inputs()) {
    if (is_object(input->type.dtype))
      throw Error(fmt::format("input {} is {}; samples are tensors of numbers", input->name, input->type.text()));
    inputs_.emplace(input->name, input->type);
  }
  with_note([&] { return "reading samples from " + path; },
            [&] {
              if (!std::filesystem::exists(path)) throw Error("there is no such file or folder", std::string(kForms));
              for (const std::string& file : files_of(path)) add_file(file);
            });
  if (batches_ > 0 || inputs_.empty()) return;
  throw Error(fmt::format("{} holds {} samples; a batch of this network has {}", path, samples_,
                          shapes_.begin()->second.front()),
              "give more samples, or a model whose batch size is dynamic");
}

/// Its shapes are those of a batch from the first file on.
int64_t DataSet::samples_in(const MappedFile& file, const std::string& input, const TensorType& type) {
  const NpyReader reader = array_in(file, input, inputs_.size());
  const Dims& array = reader.header().dims;
  const Dims dims = batch_shape(array, type);
  const Dims& known = shapes_.try_emplace(input, dims).first->second;
  HONE_CHECK(known == dims, "samples of shape [{}] are among others of shape [{}]", join_dims(dims, ","),
             join_dims(known, ","));
  return array[0];
}

void DataSet::add_file(const std::string& path) {
  with_note([&] { return "reading " + path; },
            [&] {
              const auto file = MappedFile::open(path);
              std::optional<int64_t> samples;
              for (const auto& input : inputs_)
                with_note([&] { return "reading the samples of input " + input.first; },
                          [&] {
                            const int64_t count = samples_in(*file, input.first, input.second);
                            HONE_CHECK(samples.value_or(count) == count,
                                       "{} samples of this input stand beside {} of another", count, *samples);
                            samples = count;
                          });
              const auto count = static_cast<size_t>(samples.value_or(0)),
                         batch = static_cast<size_t>(shapes_.empty() ? 1 : shapes_.begin()->second.front());
              HONE_CHECK(batch > 0, "a batch of no samples");
              sources_.push_back({path, count / batch});
              batches_ += count / batch;
              samples_ += count;
              left_over_ += count % batch;
            });
}

void DataSet::open(const Source& source) {
  if (open_ != nullptr && open_->path() == source.path) return forget(open_->bytes());
  readers_.clear();
  open_ = MappedFile::open(source.path);
}

void DataSet::load(size_t batch, const std::string& input, std::span<std::byte> memory, std::optional<DType> type) {
  auto source = sources_.begin();
  for (; batch >= source->batches; ++source) batch -= source->batches;
  with_note([&] { return fmt::format("reading the samples of input {} in {}", input, source->path); },
            [&] {
              open(*source);
              auto found = readers_.find(input);
              if (found == readers_.end())
                found = readers_.emplace(input, array_in(*open_, input, inputs_.size())).first;
              NpyReader& reader = found->second;
              const DType given = reader.header().dtype, wanted = type.value_or(inputs_.at(input).dtype);
              const size_t elements = memory.size() / size_of(wanted), bytes = elements * size_of(given);
              if (given == wanted) {
                reader.read(batch * bytes, memory.first(bytes));
              } else {
                AlignedBuffer values(bytes);
                reader.read(batch * bytes, {values.data(), values.size()});
                const Tensor tensor(given, {static_cast<int64_t>(elements)}, Blob::own(std::move(values)));
                visit(wanted, [&]<typename T>() { convert<T>(tensor, memory); });
              }
              if (batch + 1 == source->batches) reader.finish();
            });
}

std::map<std::string, Tensor> DataSet::values(size_t batch) {
  std::map<std::string, Tensor> result;
  for (const auto& [input, type] : inputs_) {
    const Dims& dims = shapes_.at(input);
    AlignedBuffer memory(static_cast<size_t>(byte_size(type.dtype, dims)));
    load(batch, input, {memory.data(), memory.size()});
    result.emplace(input, Tensor(type.dtype, dims, Blob::own(std::move(memory))));
  }
  return result;
}

}  // namespace hone
