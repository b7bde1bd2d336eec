# SPDX-License-Identifier: Apache-2.0
"""Detectors' programs over the module `tensorrt`, written as ultralytics' and yolov5's behave in public: a network of PyTorch's goes to
ONNX, behind a length and JSON text into an engine file, and a backend that asks the engine for names runs images of torch's. On a GPU over
CUDA tensors and in CUDA graphs; without one the same over the processor's tensors. Without torch: skipped."""

import collections
import json
import os
import pathlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn = torch.nn
ON_GPU = torch.cuda.is_available()
os.environ.setdefault("HONE_TENSORRT_DEVICE", "cuda:0" if ON_GPU else "cpu")
DEVICE = torch.device("cuda:0" if ON_GPU else "cpu")
networks = pytest.importorskip("trt_networks")
trt = networks.trt

CLASSES, BINS, STRIDES, SIZE = 4, 8, (8, 16), 96
ANCHORS = ((10.0, 13.0, 16.0, 30.0), (30.0, 61.0, 62.0, 45.0))  # widths and heights of two boxes a level


class Conv(nn.Sequential):
    def __init__(self, inputs, outputs, kernel=1, stride=1):
        super().__init__(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs), nn.SiLU())


class Partial(nn.Module):
    """Half of the channels go through a bottleneck; all halves are joined."""

    def __init__(self, inputs, outputs):
        super().__init__()
        half = outputs // 2
        self.first, self.inner, self.last = Conv(inputs, outputs), nn.Sequential(Conv(half, half, 3), Conv(half, half, 3)), Conv(3 * half, outputs)

    def forward(self, x):
        left, right = self.first(x).chunk(2, 1)
        return self.last(torch.cat((left, right, right + self.inner(right)), 1))


class Pyramid(nn.Module):
    """Poolings of poolings, joined."""

    def __init__(self, channels):
        super().__init__()
        self.first, self.pool, self.last = Conv(channels, channels // 2), nn.MaxPool2d(5, 1, 2), Conv(2 * channels, channels)

    def forward(self, x):
        found = [self.first(x)]
        for _ in range(3):
            found.append(self.pool(found[-1]))
        return self.last(torch.cat(found, 1))


def centres(feature):
    """Middles of a feature's cells, (cells, 2)."""
    height, width = feature.shape[2:]
    y, x = (torch.arange(size, device=feature.device, dtype=feature.dtype) + 0.5 for size in (height, width))
    return torch.stack((x.view(1, -1).expand(height, width), y.view(-1, 1).expand(height, width)), -1).reshape(-1, 2)


class FreeHead(nn.Module):
    """Distances of the box's sides as distributions, as ultralytics has them: (batch, 4 + classes, boxes)."""

    def __init__(self, channels):
        super().__init__()
        self.boxes = nn.ModuleList(nn.Conv2d(each, 4 * BINS, 1) for each in channels)
        self.classes = nn.ModuleList(nn.Conv2d(each, CLASSES, 1) for each in channels)

    def forward(self, features):
        boxes, scores = [], []
        for feature, box, kind, stride in zip(features, self.boxes, self.classes, STRIDES):
            batch = feature.shape[0]
            spread = box(feature).view(batch, 4, BINS, -1).softmax(2)
            sides = (spread * torch.arange(BINS, device=feature.device, dtype=feature.dtype).view(1, 1, BINS, 1)).sum(2)
            middle = centres(feature).transpose(0, 1).unsqueeze(0)
            begin, end = middle - sides[:, :2], middle + sides[:, 2:]
            boxes.append(torch.cat(((begin + end) / 2, end - begin), 1) * stride)
            scores.append(kind(feature).view(batch, CLASSES, -1).sigmoid())
        return torch.cat((torch.cat(boxes, 2), torch.cat(scores, 2)), 1)


class AnchoredHead(nn.Module):
    """Offsets from anchors, as yolov5 has them: (batch, boxes, 5 + classes)."""

    def __init__(self, channels):
        super().__init__()
        self.all = nn.ModuleList(nn.Conv2d(each, 2 * (5 + CLASSES), 1) for each in channels)

    def forward(self, features):
        found = []
        for feature, head, stride, anchors in zip(features, self.all, STRIDES, ANCHORS):
            batch, _, height, width = feature.shape
            raw = head(feature).view(batch, 2, 5 + CLASSES, height, width).permute(0, 1, 3, 4, 2).sigmoid()
            place, size, rest = raw.split((2, 2, 1 + CLASSES), 4)
            grid = centres(feature).view(1, 1, height, width, 2) - 1.0
            sizes = torch.tensor(anchors, device=feature.device, dtype=feature.dtype).view(1, 2, 1, 1, 2)
            found.append(torch.cat(((place * 2 + grid) * stride, (size * 2) ** 2 * sizes, rest), 4).view(batch, -1, 5 + CLASSES))
        return torch.cat(found, 1)


class Detector(nn.Module):
    def __init__(self, head):
        super().__init__()
        self.stem = nn.Sequential(Conv(3, 16, 3, 2), Conv(16, 24, 3, 2), Partial(24, 24), Conv(24, 32, 3, 2))
        self.middle, self.deep = Partial(32, 32), nn.Sequential(Conv(32, 48, 3, 2), Partial(48, 48), Pyramid(48))
        self.up, self.joined = nn.Upsample(scale_factor=2), Partial(80, 32)
        self.head = head((32, 48))

    def forward(self, images):
        middle = self.middle(self.stem(images))
        deep = self.deep(middle)
        return self.head((self.joined(torch.cat((self.up(deep), middle), 1)), deep))


def detector(head):
    """With random weights and statistics of images."""
    torch.manual_seed(3)
    model = Detector(head)
    for each in model.modules():
        if isinstance(each, nn.BatchNorm2d):
            each.momentum = 1.0
    with torch.no_grad():
        model.train()(torch.rand(4, 3, SIZE, SIZE))
    return model.eval()


def to_onnx(model, path, dynamic):
    """By the exporter that exporters of detectors ask for, which needs onnx alone."""
    pytest.importorskip("onnx")
    dtype = next(model.parameters()).dtype
    axes = {"images": {0: "batch", 2: "height", 3: "width"}, "output0": {0: "batch"}} if dynamic else None
    with pytest.warns(), torch.no_grad():  # torch says that the exporter is old
        torch.onnx.export(model, (torch.zeros(1, 3, SIZE, SIZE, dtype=dtype),), str(path), opset_version=17, input_names=["images"],
                          output_names=["output0"], dynamic_axes=axes, do_constant_folding=True, dynamo=False)


class Images(trt.IInt8Calibrator):
    """Batches of drawn images on the device, and a cache beside the engine."""

    def __init__(self, cache):
        trt.IInt8Calibrator.__init__(self)
        self.cache, self.asked, self.kept = pathlib.Path(cache), 0, None

    def get_algorithm(self):
        return trt.CalibrationAlgoType.MINMAX_CALIBRATION

    def get_batch_size(self):
        return 1

    def get_batch(self, names):
        assert list(names) == ["images"]
        self.asked += 1
        if self.asked > 4:
            return None
        self.kept = torch.rand(1, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(self.asked)).to(DEVICE)
        return [int(self.kept.data_ptr())]

    def read_calibration_cache(self):
        return self.cache.read_bytes() if self.cache.exists() and self.cache.suffix == ".cache" else None

    def write_calibration_cache(self, cache):
        self.cache.write_bytes(bytes(cache))


def to_engine(onnx, path, half=False, int8=None, dynamic=False, workspace=1, metadata=None):
    """As ultralytics exports: what the platform cannot do is left out in silence, the largest image has twice the sides."""
    logger = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(logger)
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, int(workspace * (1 << 30)))
    config.builder_optimization_level = 0  # tests are in a hurry
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    assert builder.platform_has_fast_fp16 or not half
    parser = trt.OnnxParser(network, logger)
    assert parser.parse_from_file(str(onnx)), [str(parser.get_error(at)) for at in range(parser.num_errors)]
    inputs, outputs = ([get(at) for at in range(count)] for get, count in ((network.get_input, network.num_inputs),
                                                                         (network.get_output, network.num_outputs)))
    assert [each.name for each in inputs + outputs] == ["images", "output0"]
    if dynamic:
        profile = builder.create_optimization_profile()
        for each in inputs:
            profile.set_shape(each.name, min=(1, 3, 32, 32), opt=(1, 3, SIZE, SIZE), max=(4, 3, 2 * SIZE, 2 * SIZE))
        config.add_optimization_profile(profile)
        if int8:
            config.set_calibration_profile(profile)
    if int8:
        config.set_flag(trt.BuilderFlag.INT8)
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
        config.int8_calibrator = int8
    elif half:
        config.set_flag(trt.BuilderFlag.FP16)
    with builder.build_serialized_network(network, config) as engine, open(path, "wb") as file:
        if metadata is not None:
            text = json.dumps(metadata)
            file.write(len(text).to_bytes(4, byteorder="little", signed=True))
            file.write(text.encode())
        file.write(engine)


Binding = collections.namedtuple("Binding", "name dtype shape data ptr")


class Backend:
    """Loads an engine with its text or without, and runs images of any size that it allows."""

    def __init__(self, path):
        with open(path, "rb") as file, trt.Runtime(trt.Logger(trt.Logger.WARNING)) as runtime:
            try:
                length = int.from_bytes(file.read(4), byteorder="little")
                self.metadata = json.loads(file.read(length).decode("utf-8"))
            except (UnicodeDecodeError, json.JSONDecodeError):
                self.metadata = {}
                file.seek(0)
            self.engine = runtime.deserialize_cuda_engine(file.read())
        assert not hasattr(self.engine, "num_bindings")  # else it would be taken for TensorRT 8's
        self.context, self.bindings, self.outputs, self.dynamic = self.engine.create_execution_context(), {}, [], False
        for at in range(self.engine.num_io_tensors):
            name = self.engine.get_tensor_name(at)
            dtype = trt.nptype(self.engine.get_tensor_dtype(name))
            if self.engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
                if -1 in tuple(self.engine.get_tensor_shape(name)):
                    self.dynamic = True
                    self.context.set_input_shape(name, tuple(self.engine.get_tensor_profile_shape(name, 0)[2]))
            else:
                self.outputs.append(name)
            shape = tuple(self.context.get_tensor_shape(name))
            data = torch.from_numpy(np.empty(shape, dtype=dtype)).to(DEVICE)
            self.bindings[name] = Binding(name, dtype, shape, data, int(data.data_ptr()))
        self.addresses = {name: each.ptr for name, each in self.bindings.items()}

    def reshape(self, shape):
        """For images of another size."""
        if self.dynamic and shape != self.bindings["images"].shape:
            self.context.set_input_shape("images", shape)
            self.bindings["images"] = self.bindings["images"]._replace(shape=shape)
            for name in self.outputs:
                self.bindings[name].data.resize_(tuple(self.context.get_tensor_shape(name)))
        assert shape == self.bindings["images"].shape, f"images of {shape}, the engine takes {self.bindings['images'].shape}"

    def __call__(self, images):
        images = images.half() if self.bindings["images"].dtype == np.float16 else images
        self.reshape(images.shape)
        self.addresses["images"] = int(images.data_ptr())
        assert self.context.execute_v2(list(self.addresses.values()))
        found = [self.bindings[name].data for name in sorted(self.outputs)]
        return found[0] if len(found) == 1 else found

    def enqueue(self, images, stream):
        """The same without a wait."""
        self.reshape(images.shape)
        for name, address in {**self.addresses, "images": images.data_ptr()}.items():
            assert self.context.set_tensor_address(name, int(address))
        assert self.context.execute_async_v3(stream)
        return self.bindings[self.outputs[0]].data


def pictures(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def error(found, model, images):
    """The largest, relative to the largest number that torch has."""
    with torch.no_grad():
        expected = model(images.float().cpu())
    assert found.shape == expected.shape
    return float((found.float().cpu() - expected).abs().max() / expected.abs().max())


@pytest.fixture(scope="module", params=(FreeHead, AnchoredHead))
def exported(request, tmp_path_factory):
    """(model, ONNX of one size, ONNX of all sizes)."""
    model, folder = detector(request.param), tmp_path_factory.mktemp("detector")
    for name, dynamic in (("fixed.onnx", False), ("dynamic.onnx", True)):
        to_onnx(model, folder / name, dynamic)
    return model, folder / "fixed.onnx", folder / "dynamic.onnx"


@pytest.mark.parametrize("half", (False, True))
def test_an_exported_detector_runs_images_of_its_size(exported, folder, half):
    model, fixed, _ = exported
    to_engine(fixed, folder / "d.engine", half=half, metadata={"stride": max(STRIDES), "names": {"0": "a"}})
    backend = Backend(folder / "d.engine")
    assert not backend.dynamic and backend.metadata["stride"] == 16
    for count in range(3):  # the images lie elsewhere each time
        images = pictures(1, 3, SIZE, SIZE).roll(count, 2).to(DEVICE)
        assert error(backend(images), model, images) < (2e-2 if half else 1e-4)


def test_images_in_half_precision_are_taken_where_the_export_has_them(folder):
    to_onnx(detector(FreeHead).half(), folder / "d.onnx", True)
    to_engine(folder / "d.onnx", folder / "d.engine", half=True, dynamic=True)
    backend, model = Backend(folder / "d.engine"), detector(FreeHead)
    assert backend.bindings["images"].dtype == backend.bindings["output0"].dtype == np.float16
    for shape in ((1, 3, SIZE, SIZE), (3, 3, 64, 64)):
        images = pictures(*shape).to(DEVICE)
        assert error(backend(images), model, images) < 2e-2


def test_an_engine_without_text_is_read_from_its_beginning(exported, folder):
    model, fixed, _ = exported
    to_engine(fixed, folder / "d.engine")
    backend, images = Backend(folder / "d.engine"), pictures(1, 3, SIZE, SIZE).to(DEVICE)
    assert backend.metadata == {} and error(backend(images), model, images) < 1e-4


def test_batches_and_sizes_change_from_image_to_image(exported, folder):
    model, _, dynamic = exported
    to_engine(dynamic, folder / "d.engine", dynamic=True, metadata={})
    backend = Backend(folder / "d.engine")
    assert backend.dynamic and backend.bindings["images"].shape == (4, 3, 2 * SIZE, 2 * SIZE)
    for shape in ((1, 3, SIZE, SIZE), (4, 3, 64, 128), (2, 3, 192, 160), (1, 3, 32, 32), (4, 3, 192, 192), (1, 3, SIZE, SIZE)):
        images = pictures(*shape).to(DEVICE)
        assert error(backend(images), model, images) < 1e-4


def test_calibrated_engines_are_near_and_their_cache_is_read_again(exported, folder):
    model, fixed, dynamic = exported
    images, found = pictures(1, 3, SIZE, SIZE).to(DEVICE), []
    for path, asked in ((fixed, 5), (fixed, 0), (dynamic, 0)):
        samples = Images(folder / "d.cache")
        to_engine(path, folder / "d.engine", int8=samples, dynamic=path == dynamic)
        assert samples.asked == asked
        found.append(Backend(folder / "d.engine")(images).clone())
        assert error(found[-1], model, images) < 0.2
    assert torch.equal(found[0], found[1])


def test_a_detector_is_captured_in_a_cuda_graph(exported, folder):
    """On a processor, where nothing can be captured, the calls without it."""
    model, _, dynamic = exported
    to_engine(dynamic, folder / "d.engine", dynamic=True)
    backend = Backend(folder / "d.engine")
    images = pictures(2, 3, SIZE, 64).to(DEVICE)
    if not ON_GPU:
        assert error(backend.enqueue(images, 0), model, images) < 1e-4
        return
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        backend.enqueue(images, stream.cuda_stream)  # kernels and memory are made ready
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            found = backend.enqueue(images, torch.cuda.current_stream().cuda_stream)
            best = found.amax(1)  # what the program does behind the engine is in the graph too
        for step in range(3):
            images.copy_(pictures(2, 3, SIZE, 64).roll(step, 3))
            graph.replay()
            stream.synchronize()
            assert error(found, model, images) < 1e-4
            assert torch.equal(best, found.amax(1))


def test_the_boxes_that_are_left_are_those_of_torch(exported, folder):
    """What a program does with the tensor: the best of each class by score, overlaps thrown away."""
    model, fixed, _ = exported
    to_engine(fixed, folder / "d.engine")
    images = pictures(1, 3, SIZE, SIZE).to(DEVICE)
    with torch.no_grad():
        expected = model(images.cpu())
    assert torch.equal(kept(Backend(folder / "d.engine")(images).cpu()), kept(expected))


def kept(output):
    """Indices of boxes that survive, of the first image."""
    rows = output[0].transpose(0, 1) if output.shape[1] == 4 + CLASSES else output[0]
    boxes, scores = rows[:, :4], rows[:, -CLASSES:].amax(1)
    corners = torch.cat((boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2), 1)
    left, chosen = scores.argsort(descending=True), []
    while len(left) and len(chosen) < 20:
        best, left = left[0], left[1:]
        chosen.append(best)
        inner = (torch.minimum(corners[left, 2:], corners[best, 2:]) - torch.maximum(corners[left, :2], corners[best, :2])).clamp(0).prod(1)
        union = boxes[left, 2:].prod(1) + boxes[best, 2:].prod() - inner
        left = left[inner / union < 0.45]
    return torch.stack(chosen)
