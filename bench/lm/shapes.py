"""The shapes: families of decoders, and their sizes from tiny to 0.5 B."""
from dataclasses import dataclass, replace

FAMILIES = ("llama", "qwen2", "qwen3", "phi3", "gemma2", "gemma3", "mixtral")


@dataclass(frozen=True)
class Shape:
    family: str
    width: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    inner: int
    words: int
    context: int
    theta: float = 10000.0
    local_theta: float = 0.0  # of windowed layers, where it differs
    epsilon: float = 1e-6
    tied: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    post_norms: bool = False  # four norms a layer, and residuals added after the norm
    gelu: bool = False
    embed_scale: float = 0.0
    attention_scale: float = 0.0  # 0: 1 / sqrt(head)
    attention_cap: float = 0.0
    logit_cap: float = 0.0
    window: int = 0
    window_every: int = 1  # layer i has the window unless (i + 1) % window_every == 0; 1: each layer has it
    experts: int = 0
    chosen: int = 0

    def window_of(self, layer):
        """0: none."""
        return self.window if self.window_every == 1 or (layer + 1) % self.window_every else 0

    def theta_of(self, layer):
        return self.local_theta if self.local_theta and self.window_of(layer) else self.theta

    def scale(self):
        return self.attention_scale or self.head ** -0.5


# width, layers, heads, kv heads, head, inner, words, context
SIZES = {
    "tiny": (64, 2, 4, 2, 16, 96, 160, 256),
    "small": (256, 4, 8, 2, 32, 688, 2048, 1024),
    "0.1b": (576, 12, 9, 3, 64, 1536, 49152, 4096),
    "0.5b": (896, 24, 14, 2, 64, 4864, 151936, 4096),
}


def shape(family, size):
    if family not in FAMILIES:
        raise ValueError(f"there is no family '{family}'; there are {', '.join(FAMILIES)}")
    if size not in SIZES:
        raise ValueError(f"there is no size '{size}'; there are {', '.join(SIZES)}")
    is_tiny = size == "tiny"
    s = Shape(family, *SIZES[size])
    window = 12 if is_tiny else 1024
    if family == "llama":
        return replace(s, theta=500000.0, epsilon=1e-5)
    if family == "qwen2":
        return replace(s, qkv_bias=True, tied=True, theta=1e6)
    if family == "qwen3":
        return replace(s, qk_norm=True, tied=True, theta=1e6)
    if family == "phi3":
        return replace(s, window=window, epsilon=1e-5)
    if family == "mixtral":
        return replace(s, experts=4 if is_tiny else 8, chosen=2, theta=1e6, epsilon=1e-5, inner=s.inner // (1 if is_tiny else 4) // 32 * 32)
    gemma = replace(s, post_norms=True, gelu=True, tied=True, embed_scale=s.width ** 0.5, attention_scale=(2 * s.head) ** -0.5,
                    window=window)
    if family == "gemma2":
        return replace(gemma, attention_cap=50.0, logit_cap=30.0, window_every=2)
    return replace(gemma, qk_norm=True, window_every=6 if s.layers >= 6 else 2, theta=1e6, local_theta=10000.0)
