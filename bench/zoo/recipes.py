"""The models of scripts/zoo by family: functions that write an .onnx file with random weights, at small sizes.

RECIPES: {"family/name": (needs, function)}; needs names the modules that the recipe imports. A function gets the path, and gives
nothing; inputs are made by the runner from what the file declares, with the ranges that its metadata "zoo" gives.
"""
import functools
import json

RECIPES = {}


def recipe(name, needs, function, **ranges):
    if name in RECIPES:
        raise ValueError(f"two recipes named {name}")
    RECIPES[name] = (needs, function, ranges)


# ---- PyTorch: the exporter of TorchScript, or that of torch.export where the name ends in "+export"


def write_torch(path, make, example, names=None, outputs=None, is_new=False, axes=None, opset=18):
    import torch
    torch.manual_seed(0)
    model = make().eval()
    args = example(torch)
    args = args if isinstance(args, tuple) else (args,)
    settle(model)
    with torch.no_grad():
        torch.onnx.export(model, args, str(path), input_names=names, output_names=outputs, dynamo=is_new, dynamic_axes=axes,
                          opset_version=opset)


def settle(model):
    """Statistics of batch norms that keep random networks from growing or vanishing."""
    import torch
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.running_var is not None:
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)


def image(n=1, c=3, h=64, w=None):
    return lambda torch: torch.randn(n, c, h, w or h)


class Plain:
    """A module's outputs as tensors: what libraries give as dicts and lists is flattened."""

    def __new__(cls, module, pick=None):
        import torch

        class Wrapped(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.module = module

            def forward(self, *args):
                return flat(self.module(*args) if pick is None else pick(self.module, *args))
        return Wrapped()


def flat(value):
    if hasattr(value, "to_tuple"):
        value = value.to_tuple()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return tuple(x for item in value for x in (flat(item) if isinstance(flat(item), tuple) else (flat(item),)) if x is not None)
    return value


def vision(name, size=64, new=False, part=None, **options):
    def make():
        import torchvision.models as models
        where = getattr(models, part) if part else models
        return Plain(getattr(where, name)(weights=None, **options))
    label = f"torchvision/{name}" + ("+export" if new else "")
    recipe(label, "torch torchvision", lambda path: write_torch(path, make, image(h=size), ["x"], is_new=new))


for _name in ("resnet18 resnet34 resnet50 wide_resnet50_2 resnext50_32x4d mobilenet_v2 mobilenet_v3_small mobilenet_v3_large densenet121 "
              "squeezenet1_0 squeezenet1_1 shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x2_0 mnasnet0_5 mnasnet1_0 efficientnet_b0 "
              "efficientnet_b1 efficientnet_v2_s regnet_x_400mf regnet_y_400mf regnet_x_1_6gf regnet_y_800mf convnext_tiny"
              ).split():
    vision(_name)
vision("googlenet", 96, init_weights=False, aux_logits=False)
vision("inception_v3", 96, init_weights=False, aux_logits=False)
vision("alexnet", 224)
vision("vgg11_bn", 224)
vision("swin_t", 64)
vision("swin_v2_t", 64)
vision("maxvit_t", 224)
vision("vit_b_16", 32, image_size=32)
for _name in ("resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "efficientnet_b0", "swin_t"):
    vision(_name, new=True)
for _name in ("fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"):
    vision(_name, 96, part="segmentation", weights_backbone=None)


def video(name):
    def make():
        import torchvision.models.video as models
        return getattr(models, name)(weights=None)
    recipe(f"torchvision/{name}", "torch torchvision",
           lambda path: write_torch(path, make, lambda torch: torch.randn(1, 3, 8, 32, 32), ["x"]))


for _name in ("r3d_18", "mc3_18", "r2plus1d_18"):
    video(_name)


def detection(name, size):
    def make():
        import torchvision.models.detection as models
        model = getattr(models, name)(weights=None, weights_backbone=None, num_classes=5)
        return Plain(model, lambda module, x: [x for one in module([x]) for x in one.values()])
    recipe(f"torchvision/{name}", "torch torchvision",
           lambda path: write_torch(path, make, lambda torch: torch.rand(3, size, size), ["x"]), x=[0, 1])


for _name, _size in (("ssdlite320_mobilenet_v3_large", 160), ("fasterrcnn_mobilenet_v3_large_320_fpn", 160), ("retinanet_resnet50_fpn", 128),
                     ("maskrcnn_resnet50_fpn", 128)):
    detection(_name, _size)


# ---- timm


def timm_model(name, size=None, **options):
    def make():
        import timm
        return timm.create_model(name, pretrained=False, **options)

    def example(torch):
        import timm
        model = timm.create_model(name, pretrained=False, **options)
        wanted = model.default_cfg.get("input_size", (3, 224, 224))[-1]
        n = size or (wanted if model.default_cfg.get("fixed_input_size") else min(wanted, 96))
        return torch.randn(1, 3, n, n)
    recipe(f"timm/{name}", "torch timm", lambda path: write_torch(path, make, example, ["x"]))


for _name in ("resnet10t resnet14t resnet26d resnetv2_50 seresnet18 skresnet18 ecaresnet26t gcresnet33ts sehalonet33ts resnest14d res2net50_14w_8s "
              "mobilenetv1_100 mobilenetv4_conv_small mobilenetv4_hybrid_medium lcnet_050 tinynet_e fbnetc_100 mixnet_s hardcorenas_a "
              "semnasnet_050 spnasnet_100 efficientnet_lite0 efficientnetv2_rw_t ghostnet_050 ghostnetv2_100 repghostnet_050 repvgg_a0 "
              "mobileone_s0 fastvit_t8 edgenext_xx_small mobilevit_xxs mobilevitv2_050 levit_128s levit_conv_128s efficientformer_l1 "
              "efficientformerv2_s0 efficientvit_b0 efficientvit_m0 repvit_m0_9 tiny_vit_5m_224 starnet_s1 poolformer_s12 poolformerv2_s12 "
              "convnext_atto convnextv2_atto convformer_s18 caformer_s18 inception_next_atto hgnetv2_b0 cspresnet50 cspdarknet53 darknet53 "
              "dla34 dpn48b hrnet_w18_small selecsls42 vovnet39a ese_vovnet19b_dw regnetz_005 nf_regnet_b0 nfnet_l0 xcit_nano_12_p16_224 "
              "crossvit_tiny_240 cait_xxs24_224 deit_tiny_patch16_224 vit_tiny_patch16_224 vit_small_r26_s32_224 beit_base_patch16_224 "
              "mixer_s32_224 gmlp_ti16_224 resmlp_12_224 visformer_tiny pit_ti_224 pvt_v2_b0 twins_svt_small swin_tiny_patch4_window7_224 "
              "coatnet_nano_rw_224 coat_lite_tiny maxvit_nano_rw_256 volo_d1_224 eva02_tiny_patch14_224 hiera_tiny_224 davit_tiny "
              "focalnet_tiny_srf mambaout_femto nest_tiny sequencer2d_s tresnet_m rexnet_100 bat_resnext26ts botnet26t_256").split():
    timm_model(_name)


# ---- transformers, with configurations of two small layers

SMALL = {"vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
         "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def text_model(label, config, model, new=False, inputs=1, is_masked=True, **options):
    def make():
        import transformers
        made = getattr(transformers, config)(**{name: value for name, value in {**SMALL, **options}.items() if value is not None})
        made._attn_implementation = "eager"
        if hasattr(made, "use_cache"):
            made.use_cache = False
        net = getattr(transformers, model)(made)
        if inputs == 1:  # with a mask, without which decoders look for packed sequences by operators that no exporter has
            return Plain(net, lambda module, ids: module(input_ids=ids, **({"attention_mask": ids.new_ones(2, 12)} if is_masked else {})).to_tuple()[:1])
        return Plain(net, lambda module, ids, other: module(input_ids=ids, decoder_input_ids=other).to_tuple()[:1])

    def example(torch):
        ids = torch.randint(3, 100, (2, 12))
        return (ids,) if inputs == 1 else (ids, torch.randint(3, 100, (2, 7)))
    names = ["ids", "decoded"][:inputs]
    recipe(f"transformers/{label}" + ("+export" if new else ""), "torch transformers",
           lambda path: write_torch(path, make, example, names, is_new=new), ids=[3, 100], decoded=[3, 100])


for _label, _class, *_more in (
        ("bert", "Bert"), ("roberta", "Roberta"), ("distilbert", "DistilBert", {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4}),
        ("albert", "Albert", {"embedding_size": 16}), ("electra", "Electra", {"embedding_size": 16}), ("camembert", "Camembert"),
        ("mobilebert", "MobileBert", {"embedding_size": 16, "intra_bottleneck_size": 16}), ("squeezebert", "SqueezeBert", {"embedding_size": 32}),
        ("deberta", "Deberta"), ("deberta_v2", "DebertaV2"), ("convbert", "ConvBert", {"embedding_size": 32}), ("fnet", "FNet"),
        ("funnel", "Funnel", {"d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64, "block_sizes": [1, 1], "num_hidden_layers": None}),
        ("nystromformer", "Nystromformer", {"segment_means_seq_len": 12, "num_landmarks": 12, "is_masked": False}), ("mpnet", "MPNet"), ("layoutlm", "LayoutLM"),
        ("xlm_roberta", "XLMRoberta"), ("ibert", "IBert"), ("rembert", "RemBert", {"input_embedding_size": 16, "output_embedding_size": 16}),
        ("ernie", "Ernie"), ("modernbert", "ModernBert"), ("nomic", "Megatron" "Bert"), ("roc_bert", "RoCBert"),
        ("xlnet", "XLNet", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64, "max_position_embeddings": None}),
        ("gpt2", "GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
        ("gpt_neo", "GPTNeo", {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]}),
        ("gptj", "GPTJ", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64}),
        ("gpt_neox", "GPTNeoX"), ("opt", "OPT", {"ffn_dim": 64, "word_embed_proj_dim": 32}), ("bloom", "Bloom", {"n_layer": 2, "n_head": 4}),
        ("llama", "Llama", {"num_key_value_heads": 2}), ("mistral", "Mistral", {"num_key_value_heads": 2}),
        ("qwen2", "Qwen2", {"num_key_value_heads": 2}), ("qwen3", "Qwen3", {"num_key_value_heads": 2, "head_dim": 8}),
        ("gemma", "Gemma", {"num_key_value_heads": 1, "head_dim": 8}), ("gemma2", "Gemma2", {"num_key_value_heads": 2, "head_dim": 8}),
        ("phi", "Phi"), ("phi3", "Phi3"), ("falcon", "Falcon", {"multi_query": True}), ("stablelm", "StableLm", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}),
        ("olmo", "Olmo"), ("olmo2", "Olmo2"), ("starcoder2", "Starcoder2", {"num_key_value_heads": 2}), ("granite", "Granite"),
        ("mamba", "Mamba", {"state_size": 8}), ("codegen", "CodeGen", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4}),
        ("biogpt", "BioGpt"), ("openai_gpt", "OpenAIGPT", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64})):
    text_model(_label, _class + "Config", _class + "Model", **(_more[0] if _more else {}))
for _label, _class, _options in (
        ("bert", "Bert", {}), ("gpt2", "GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}), ("llama", "Llama", {}),
        ("gptj", "GPTJ", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64}), ("gpt_neox", "GPTNeoX", {}),
        ("mistral", "Mistral", {"num_key_value_heads": 2}), ("qwen3", "Qwen3", {"num_key_value_heads": 2, "head_dim": 8}),
        ("gemma2", "Gemma2", {"num_key_value_heads": 2, "head_dim": 8}), ("phi3", "Phi3", {"num_key_value_heads": 2}),
        ("cohere", "Cohere", {"num_key_value_heads": 2})):
    text_model(_label, _class + "Config", _class + "Model", new=True, **_options)
_two = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "decoder_start_token_id": 2}
for _label, _class in (("bart", "Bart"), ("mbart", "MBart"), ("pegasus", "Pegasus"), ("marian", "Marian"), ("m2m_100", "M2M100"),
                       ("blenderbot_small", "BlenderbotSmall"), ("plbart", "PLBart")):
    text_model(_label, _class + "Config", _class + "Model", inputs=2, **_two)
for _label, _class in (("t5", "T5"), ("mt5", "MT5"), ("umt5", "UMT5")):
    text_model(_label, _class + "Config", _class + "Model", inputs=2, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
               decoder_start_token_id=0)


def other_model(label, config, model, example, names, options, call=None, **ranges):
    def make():
        import transformers
        made = getattr(transformers, config)(**options)
        made._attn_implementation = "eager"
        return Plain(getattr(transformers, model)(made), call or (lambda module, x: module(x).to_tuple()[:1]))
    recipe(f"transformers/{label}", "torch transformers", lambda path: write_torch(path, make, example, names), **ranges)


_seen = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32, "patch_size": 8}
for _label, _class in (("vit", "ViT"), ("deit", "DeiT"), ("beit", "Beit"), ("dinov2", "Dinov2"), ("data2vec_vision", "Data2VecVision"),
                       ("vit_mae", "ViTMAE"), ("vit_msn", "ViTMSN"), ("yolos", "Yolos")):
    _size = {"image_size": [32, 32]} if _label == "yolos" else {}
    _call = (lambda module, x: module(x, noise=x[:, 0, :4, :4].reshape(1, 16)).to_tuple()[:1]) if _label == "vit_mae" else None  # else by chance
    other_model(_label, _class + "Config", _class + "Model", image(h=32), ["x"], {**_seen, **_size}, _call)
other_model("swin", "SwinConfig", "SwinModel", image(h=32), ["x"], {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 1],
                                                                   "num_heads": [2, 2], "window_size": 4})
other_model("swinv2", "Swinv2Config", "Swinv2Model", image(h=32), ["x"], {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 1],
                                                                         "num_heads": [2, 2], "window_size": 4})
other_model("segformer", "SegformerConfig", "SegformerForSemanticSegmentation", image(h=64), ["x"],
            {"hidden_sizes": [16, 16, 32, 32], "depths": [1] * 4, "decoder_hidden_size": 32})
other_model("convnext", "ConvNextConfig", "ConvNextModel", image(h=64), ["x"], {"hidden_sizes": [16, 16, 32, 32], "depths": [1] * 4})
other_model("convnextv2", "ConvNextV2Config", "ConvNextV2Model", image(h=64), ["x"], {"hidden_sizes": [16, 16, 32, 32], "depths": [1] * 4})
other_model("resnet", "ResNetConfig", "ResNetModel", image(h=64), ["x"], {"hidden_sizes": [16, 32], "depths": [1, 1], "embedding_size": 16})
other_model("mobilenet_v2", "MobileNetV2Config", "MobileNetV2Model", image(h=64), ["x"], {"depth_multiplier": 0.35})
other_model("mobilevit", "MobileViTConfig", "MobileViTModel", image(h=64), ["x"], {"hidden_sizes": [16, 16, 16],
                                                                                "neck_hidden_sizes": [8, 8, 8, 8, 16, 16, 32]})
other_model("dpt", "DPTConfig", "DPTForDepthEstimation", image(h=32), ["x"],
            {**_seen, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "neck_hidden_sizes": [8, 8, 8, 8], "fusion_hidden_size": 8})
_heard = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "conv_dim": [16] * 7,
          "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
for _label, _class in (("wav2vec2", "Wav2Vec2"), ("hubert", "Hubert"), ("wavlm", "WavLM"), ("data2vec_audio", "Data2VecAudio"),
                       ("unispeech", "UniSpeech")):
    other_model(_label, _class + "Config", _class + "Model", lambda torch: torch.randn(1, 4000), ["x"], _heard)
other_model("whisper", "WhisperConfig", "WhisperModel", lambda torch: (torch.randn(1, 20, 64), torch.randint(3, 100, (1, 5))), ["x", "decoded"],
            {**_two, "vocab_size": 128, "num_mel_bins": 20, "max_source_positions": 32, "max_target_positions": 32, "pad_token_id": 0},
            lambda module, x, ids: module(x, decoder_input_ids=ids).to_tuple()[:1], decoded=[3, 100])
other_model("ast", "ASTConfig", "ASTModel", lambda torch: torch.randn(1, 64, 32), ["x"], {**_seen, "max_length": 64, "num_mel_bins": 32})
other_model("clip_vision", "CLIPVisionConfig", "CLIPVisionModel", image(h=32), ["x"], _seen)
other_model("siglip_vision", "SiglipVisionConfig", "SiglipVisionModel", image(h=32), ["x"], _seen)
other_model("clip_text", "CLIPTextConfig", "CLIPTextModel", lambda torch: torch.randint(3, 100, (2, 12)), ["ids"],
            {**{k: v for k, v in _seen.items() if "size" not in k or "hid" in k}, **SMALL}, ids=[3, 100])
other_model("time_series", "PatchTSTConfig", "PatchTSTModel", lambda torch: torch.randn(2, 64, 3), ["x"],
            {"num_input_channels": 3, "context_length": 64, "patch_length": 8, "patch_stride": 8, "d_model": 32, "num_hidden_layers": 2,
             "num_attention_heads": 4, "ffn_dim": 64})


# ---- modules of torch.nn by themselves


def module(label, make, example, names=("x",), new=True, **ranges):
    recipe(f"torch/{label}", "torch", lambda path: write_torch(path, make, example, list(names)), **ranges)
    if new:
        recipe(f"torch/{label}+export", "torch", lambda path: write_torch(path, make, example, list(names), is_new=True), **ranges)


def nets():
    from torch import nn
    return nn


def of(build):
    """A module from an expression over torch.nn."""
    return lambda: build(nets())


def function(call):
    """A module of a function of tensors."""
    def make():
        import torch

        class Called(torch.nn.Module):
            def forward(self, *args):
                return call(torch, *args)
        return Called()
    return make


def first(build):
    return lambda: Plain(build(nets()), lambda made, *args: flat(made(*args))[:1])


def rows(*shape):
    return lambda torch: torch.randn(*shape)


for _cell in ("LSTM", "GRU", "RNN"):
    module(_cell.lower(), first(lambda nn, c=_cell: getattr(nn, c)(16, 24, 2)), rows(9, 2, 16))
    module(_cell.lower() + "_both_ways", first(lambda nn, c=_cell: getattr(nn, c)(16, 24, batch_first=True, bidirectional=True)), rows(2, 9, 16), new=False)
module("transformer_encoder", of(lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)), rows(2, 10, 32))
module("transformer", of(lambda nn: nn.Transformer(32, 4, 1, 1, 64, batch_first=True)), lambda t: (t.randn(2, 10, 32), t.randn(2, 6, 32)), ("x", "y"), new=False)
module("attention", first(lambda nn: nn.MultiheadAttention(32, 4, batch_first=True)), lambda t: (t.randn(2, 6, 32),) * 3, ("q", "k", "v"), new=False)
module("dcgan", of(lambda nn: nn.Sequential(nn.ConvTranspose2d(32, 64, 4), nn.BatchNorm2d(64), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1),
                                            nn.BatchNorm2d(32), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh())), rows(2, 32, 1, 1))
module("autoencoder", of(lambda nn: nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Upsample(scale_factor=2),
                                                  nn.Conv2d(32, 16, 3, 1, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 2, 2), nn.Sigmoid())), image(h=32))
module("tcn", of(lambda nn: nn.Sequential(nn.Conv1d(8, 16, 3, dilation=2, padding=2), nn.ReLU(), nn.Conv1d(16, 16, 3, groups=4, padding=1), nn.PReLU(),
                                          nn.AvgPool1d(2), nn.BatchNorm1d(16))), rows(2, 8, 40))
module("volume", of(lambda nn: nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.ELU(), nn.MaxPool3d(2), nn.Conv3d(8, 8, 3, groups=8), nn.GroupNorm(2, 8),
                                             nn.ConvTranspose3d(8, 2, 2, 2))), rows(1, 1, 8, 12, 12))
module("pixel_shuffle", of(lambda nn: nn.Sequential(nn.Conv2d(3, 16, 5, padding=2), nn.Tanh(), nn.Conv2d(16, 12, 3, padding=1), nn.PixelShuffle(2))), image(h=24))
module("norms", of(lambda nn: nn.Sequential(nn.Conv2d(3, 8, 1), nn.InstanceNorm2d(8, affine=True), nn.LocalResponseNorm(3), nn.GroupNorm(4, 8), nn.LayerNorm(16))), image(h=16))
module("activations", of(lambda nn: nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16), nn.GELU("tanh"), nn.SiLU(), nn.Mish(), nn.Hardswish(),
                                                  nn.Softplus(), nn.SELU(), nn.CELU(), nn.Softsign(), nn.LogSigmoid(), nn.Hardtanh(), nn.Hardsigmoid(),
                                                  nn.LeakyReLU(), nn.GLU(), nn.Softmax(-1))), rows(3, 16))
module("mlp", of(lambda nn: nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Linear(64, 10), nn.LogSoftmax(-1))), rows(4, 32))
module("embedding_bag", of(lambda nn: nn.EmbeddingBag(50, 8, mode="mean")), lambda t: (t.randint(0, 50, (12,)), t.tensor([0, 3, 7])), ("ids", "starts"), new=False, ids=[0, 50], starts="sorted 12")
for _mode in ("nearest", "bilinear", "bicubic"):
    module(f"resize_{_mode}", function(lambda torch, x, m=_mode: torch.nn.functional.interpolate(x, scale_factor=1.7, mode=m)), image(h=17), new=False)
module("grid_sample", function(lambda torch, x, g: torch.nn.functional.grid_sample(x, g, align_corners=False)), lambda t: (t.randn(1, 3, 9, 9), t.rand(1, 5, 5, 2) * 2 - 1), ("x", "g"), g=[-1, 1])
module("top_k", function(lambda torch, x: torch.topk(x, 5, -1)), rows(4, 50))
module("scatter", function(lambda torch, x: torch.zeros(4, 20).scatter(1, x.argsort(1)[:, :7], x[:, :7])), rows(4, 20))
module("gather", function(lambda torch, x: x.gather(1, x.argsort(1)).cumsum(1)), rows(4, 20))
module("einsum", function(lambda torch, x, y: torch.einsum("bhqd,bhkd->bhqk", x, y).softmax(-1)), lambda t: (t.randn(2, 3, 4, 5), t.randn(2, 3, 6, 5)), ("x", "y"))
module("masked", function(lambda torch, x: x.masked_fill(torch.ones(6, 6).triu(1).bool(), float("-inf")).softmax(-1)), rows(2, 6, 6))
module("nonzero", function(lambda torch, x: x[x > 0.5].sort()[0]), rows(40), new=False)
module("reductions", function(lambda torch, x: (x.std(1), x.var(0), x.logsumexp(1), x.norm(2, 1), x.prod(0), x.amax((0, 1)), x.argmin(1), x.median(1)[0])), rows(5, 7), new=False)
module("layouts", function(lambda torch, x: torch.roll(x.unfold(2, 3, 2).permute(0, 3, 1, 2).flip(1), 1, 2).repeat(1, 2, 1, 1)), rows(2, 3, 9), new=False)
module("indexing", function(lambda torch, x: torch.cat([x[:, ::2], x[..., [0, 2, 1], :][:, :5]], 2)), rows(2, 10, 4, 4), new=False)
module("trigonometry", function(lambda torch, x: torch.stack([x.sin().asin(), x.cos(), x.tan(), x.sinh(), x.atan(), torch.atan2(x, x + 2), x.erf(), x.exp().log1p(), torch.special.erfc(x)])), rows(4, 6), new=False)
module("distances", function(lambda torch, x, y: (torch.cdist(x, y), torch.nn.functional.cosine_similarity(x[:3], y))), lambda t: (t.randn(5, 4), t.randn(3, 4)), ("x", "y"), new=False)
module("integers", function(lambda torch, x: ((x // 3) % 5, x & 6, x << 2, torch.bincount(x, minlength=20) if False else x.bitwise_xor(x * 2), x.clamp(2, 9).float().mean(0))),
       lambda t: t.randint(0, 30, (4, 6)), new=False, x=[0, 30])
module("spectrum", function(lambda torch, x: torch.stft(x, 32, 16, window=torch.hann_window(32), return_complex=False).pow(2).sum(-1).sqrt()), rows(1, 256), new=False)


# ---- scikit-learn


def sklearn_model(label, build, kind="numbers", target="class"):
    def write(path):
        import warnings
        import numpy as np
        import onnx
        from skl2onnx import to_onnx
        warnings.filterwarnings("ignore")
        rng = np.random.default_rng(0)
        x = rng.normal(size=(120, 6)).astype(np.float32)
        if kind == "positive":
            x = np.abs(x)
        if kind == "texts":
            words = np.array("the quick brown fox jumps over a lazy dog again".split())
            x = np.array([" ".join(rng.choice(words, 6)) for _ in range(120)]).reshape(-1, 1)
        if kind == "categories":
            x = rng.choice(np.array(["red", "green", "blue"], object), (120, 3))
        y = (rng.integers(0, 3, 120) if target == "class" else np.array(["no", "yes"])[rng.integers(0, 2, 120)] if target == "words"
             else x[:, 0] * 2 + x[:, 1] + rng.normal(size=120).astype(np.float32) * 0.1)
        model = build()
        model.fit(x[:, 0] if kind == "texts" else x, y)
        made = to_onnx(model, x[:2], target_opset={"": 18, "ai.onnx.ml": 3})
        onnx.save(made, str(path))
    recipe(f"sklearn/{label}", "sklearn skl2onnx", write)


def learner(where, name, **options):
    def build():
        import importlib
        return getattr(importlib.import_module("sklearn." + where), name)(**options)
    return build


def chain(*parts):
    def build():
        from sklearn.pipeline import make_pipeline
        return make_pipeline(*[part() for part in parts])
    return build


for _where, _name, _options in (
        ("linear_model", "LogisticRegression", {}), ("linear_model", "RidgeClassifier", {}), ("linear_model", "SGDClassifier", {}), ("svm", "SVC", {"probability": True}),
        ("svm", "LinearSVC", {}), ("tree", "DecisionTreeClassifier", {}), ("ensemble", "RandomForestClassifier", {"n_estimators": 10}),
        ("ensemble", "ExtraTreesClassifier", {"n_estimators": 10}), ("ensemble", "GradientBoostingClassifier", {"n_estimators": 10}),
        ("ensemble", "HistGradientBoostingClassifier", {"max_iter": 10}), ("ensemble", "AdaBoostClassifier", {"n_estimators": 10}),
        ("neighbors", "KNeighborsClassifier", {}), ("naive_bayes", "GaussianNB", {}), ("neural_network", "MLPClassifier", {"max_iter": 50}),
        ("discriminant_analysis", "LinearDiscriminantAnalysis", {}), ("gaussian_process", "GaussianProcessClassifier", {})):
    sklearn_model(_name, learner(_where, _name, **_options))
for _where, _name, _options in (
        ("linear_model", "LinearRegression", {}), ("linear_model", "Lasso", {}), ("svm", "SVR", {}), ("tree", "DecisionTreeRegressor", {}),
        ("ensemble", "RandomForestRegressor", {"n_estimators": 10}), ("ensemble", "GradientBoostingRegressor", {"n_estimators": 10}),
        ("neighbors", "KNeighborsRegressor", {}), ("neural_network", "MLPRegressor", {"max_iter": 50}), ("gaussian_process", "GaussianProcessRegressor", {})):
    sklearn_model(_name, learner(_where, _name, **_options), target="number")
for _where, _name, _options in (
        ("preprocessing", "StandardScaler", {}), ("preprocessing", "MinMaxScaler", {}), ("preprocessing", "PolynomialFeatures", {}), ("preprocessing", "Normalizer", {}),
        ("preprocessing", "KBinsDiscretizer", {"encode": "ordinal"}), ("decomposition", "PCA", {"n_components": 3}), ("cluster", "KMeans", {"n_clusters": 3}),
        ("ensemble", "IsolationForest", {"n_estimators": 10}), ("impute", "SimpleImputer", {}), ("preprocessing", "PowerTransformer", {})):
    sklearn_model(_name, learner(_where, _name, **_options))
sklearn_model("pipeline_scaled", chain(learner("preprocessing", "StandardScaler"), learner("linear_model", "LogisticRegression")), target="words")
sklearn_model("pipeline_categories", chain(learner("preprocessing", "OneHotEncoder"), learner("linear_model", "LogisticRegression")), "categories", "words")
sklearn_model("pipeline_texts", chain(learner("feature_extraction.text", "TfidfVectorizer"), learner("linear_model", "LogisticRegression")), "texts", "words")


# ---- Keras, through tf2onnx


def keras_model(label, build, shape, dtype="float32", **ranges):
    def write(path):
        import tensorflow as tf
        import tf2onnx
        tf.keras.utils.set_random_seed(0)
        model = build(tf.keras)
        call = tf.function(lambda x: model(x, training=False))
        tf2onnx.convert.from_function(call, [tf.TensorSpec((None, *shape), dtype, name="x")], opset=17, output_path=str(path))
    recipe(f"keras/{label}", "tensorflow tf2onnx", write, batch=2, **ranges)


def keras_application(name, size=64):
    keras_model(name, lambda keras: getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=10), (size, size, 3))


for _name in ("MobileNet", "MobileNetV2", "MobileNetV3Small", "EfficientNetB0", "EfficientNetV2B0", "DenseNet121", "ResNet50V2", "NASNetMobile", "Xception"):
    keras_application(_name, 96 if _name == "Xception" else 64)
for _cell in ("LSTM", "GRU", "SimpleRNN"):
    keras_model(_cell, lambda keras, c=_cell: keras.Sequential([keras.layers.Embedding(50, 16), getattr(keras.layers, c)(16), keras.layers.Dense(3)]), (12,), "int32", x=[0, 50])
keras_model("unet", lambda keras: keras.Sequential([keras.layers.Conv2D(8, 3, 2, "same", activation="swish"), keras.layers.Conv2DTranspose(8, 3, 2, "same"),
                                                    keras.layers.UpSampling2D(interpolation="bilinear"), keras.layers.SeparableConv2D(4, 3)]), (16, 16, 3))
keras_model("attention", lambda keras: _keras_attention(keras), (10, 16))
keras_model("conv_lstm", lambda keras: keras.Sequential([keras.layers.ConvLSTM2D(4, 3, padding="same"), keras.layers.GlobalMaxPooling2D()]), (4, 8, 8, 2))


def _keras_attention(keras):
    x = keras.Input((10, 16))
    y = keras.layers.LayerNormalization()(x + keras.layers.MultiHeadAttention(2, 8)(x, x))
    return keras.Model(x, keras.layers.Dense(4, activation="gelu")(y))


# ---- models of others, by ONNX Runtime's quantisers and optimiser, and in float16


def changed(label, base, change):
    def write(path):
        plain = path.with_suffix(".plain.onnx")
        RECIPES[base][1](plain)
        change(plain, path)
        plain.unlink()
    needs, _, ranges = RECIPES[base]
    recipe(f"onnxruntime/{label}", needs + " onnxruntime", write, **ranges)


def quantised(form, types):
    def change(plain, path):
        import numpy as np
        import onnx
        from onnxruntime import quantization as q
        shaped = plain.with_suffix(".shaped.onnx")
        q.quant_pre_process(str(plain), str(shaped), skip_symbolic_shape=True)
        if form == "dynamic":
            q.quantize_dynamic(str(shaped), str(path), weight_type=q.QuantType.QInt8)
        else:
            value = onnx.load(str(shaped)).graph.input[0]
            shape = [d.dim_value for d in value.type.tensor_type.shape.dim]

            class Reader(q.CalibrationDataReader):
                left = 4

                def get_next(self):
                    self.left -= 1
                    if self.left < 0:
                        return None
                    return {value.name: np.random.default_rng(self.left).normal(size=shape).astype(np.float32)}
            kinds = {"u8": q.QuantType.QUInt8, "s8": q.QuantType.QInt8, "u16": q.QuantType.QUInt16}
            q.quantize_static(str(shaped), str(path), Reader(), quant_format=getattr(q.QuantFormat, form),
                              activation_type=kinds[types[:-2]], weight_type=kinds[types[-2:]], per_channel=types.startswith("u8"))
        shaped.unlink()
    return change


for _base in ("torchvision/resnet18", "torchvision/mobilenet_v2", "torchvision/shufflenet_v2_x0_5", "timm/convnext_atto", "timm/vit_tiny_patch16_224"):
    _name = _base.split("/")[1]
    changed(_name + "_qdq_u8s8", _base, quantised("QDQ", "u8s8"))
    changed(_name + "_qoperator_u8s8", _base, quantised("QOperator", "u8s8"))
changed("resnet18_qdq_s8s8", "torchvision/resnet18", quantised("QDQ", "s8s8"))
changed("resnet18_qdq_u16s8", "torchvision/resnet18", quantised("QDQ", "u16s8"))
for _base in ("transformers/bert", "transformers/gpt2", "torch/lstm", "torch/mlp"):
    changed(_base.split("/")[1] + "_dynamic", _base, quantised("dynamic", ""))


def optimised(kind):
    def change(plain, path):
        from onnxruntime.transformers import optimizer
        optimizer.optimize_model(str(plain), model_type=kind, num_heads=4, hidden_size=32).save_model_to_file(str(path))
    return change


for _base, _kind in (("bert", "bert"), ("roberta", "bert"), ("gpt2", "gpt2"), ("vit", "vit"), ("bart", "bart")):
    changed(f"{_base}_optimised", f"transformers/{_base}", optimised(_kind))


def half(plain, path):
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16
    onnx.save(convert_float_to_float16(onnx.load(str(plain)), keep_io_types=True), str(path))


for _base in ("torchvision/resnet18", "torchvision/mobilenet_v3_small", "timm/vit_tiny_patch16_224", "transformers/bert", "transformers/llama"):
    changed(_base.split("/")[1] + "_float16", _base, half)


def export(name, path):
    """Writes a model with the ranges of its inputs in the file's metadata."""
    import onnx
    _, write, ranges = RECIPES[name]
    write(path)
    model = onnx.load(str(path))
    if ranges:
        onnx.helper.set_model_props(model, {"zoo": json.dumps(ranges)})
        onnx.save(model, str(path))


families = functools.cache(lambda: sorted({name.split("/")[0] for name in RECIPES}))
