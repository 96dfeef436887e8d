"""Times of ResNet-50 and of the benchmark's encoder in PyTorch: eager, compiled into a CUDA graph, TF32 off and on, float16.

The last line is JSON: {"resnet50_batch_1_float32_graph": ms a run, ...}. scripts/bench gpu times the same networks in
Heddle. Exit status 77 where there is no PyTorch or no GPU. Weights are random: only times matter.
"""
import json
import statistics
import sys


def resnet50(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inner, outer, before, stride):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(before, inner, 1), nn.ReLU(), nn.Conv2d(inner, inner, 3, stride, 1), nn.ReLU(), nn.Conv2d(inner, outer, 1))
            self.side = nn.Conv2d(before, outer, 1, stride) if before != outer or stride != 1 else nn.Identity()

        def forward(self, x):
            return torch.relu(self.body(x) + self.side(x))

    layers, before = [nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for inner, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Block(inner, 4 * inner, before, stride if i == 0 else 1))
            before = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def encoder(torch, layers=6, width=384, heads=12):
    layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=False)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def timed(torch, call, rounds=15, runs=10):
    """The median of ms a run."""
    for _ in range(3):
        call()
    samples = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(runs):
            call()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) / runs)
    return statistics.median(samples)


def graph_of(torch, call):
    """The call as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def main():
    try:
        import torch
    except ImportError as error:
        print(f"PyTorch is not here: {error}")
        return 77
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        return 77
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name(0)}")
    times = {}
    for name, make, shape in (("resnet50", resnet50, (3, 224, 224)), ("encoder", encoder, (128, 384))):
        for kind, dtype, tf32 in (("float32", torch.float32, False), ("tf32", torch.float32, True), ("float16", torch.float16, True)):
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
            torch.backends.cudnn.benchmark = True
            model = make(torch).eval().to("cuda", dtype)
            for batch in 1, 32:
                x = torch.randn(batch, *shape, device="cuda", dtype=dtype)

                def call(model=model, x=x):
                    with torch.no_grad():
                        return model(x)

                for how, wrap in (("eager", lambda c: c), ("graph", lambda c: graph_of(torch, c))):
                    key = f"{name}_batch_{batch}_{kind}_{how}"
                    try:
                        times[key] = round(timed(torch, wrap(call)), 4)
                        print(f"{key}: {times[key]} ms", flush=True)
                    except Exception as error:  # one of them must not cost the others
                        print(f"{key}: {error}", flush=True)
    print(json.dumps(times))
    return 0


if __name__ == "__main__":
    sys.exit(main())
