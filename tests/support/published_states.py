"""State dicts of place networks as their authors' code names and shapes them, written down from that code.

Each function gives {name: shape}; `draw` fills one with random numbers. Nothing here imports the package.
"""

import torch


def draw(shapes, seed=0, spread=0.5):
    """Random weights; scales and variances of norms near 1, so that signals neither die nor explode."""
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in shapes.items():
        values = torch.randn(shape, generator=generator)
        if name.endswith("num_batches_tracked"):
            state[name] = torch.tensor(7)
        elif name.endswith("running_var"):
            state[name] = 0.5 + values.abs()
        elif len(shape) > 1:
            fan = values[0].numel()
            state[name] = 2 * spread * values / fan**0.5
        else:
            start = 3 if name.endswith(".p") else 1 if name.endswith(("weight", "gamma")) else 0
            state[name] = start + 0.2 * values
    return state


def norm(name, channels, is_batch=True):
    found = {f"{name}.weight": (channels,), f"{name}.bias": (channels,)}
    if is_batch:
        found |= {f"{name}.running_mean": (channels,), f"{name}.running_var": (channels,)}
        found |= {f"{name}.num_batches_tracked": ()}
    return found


def linear(name, inputs, outputs, bias=True):
    return {f"{name}.weight": (outputs, inputs), **({f"{name}.bias": (outputs,)} if bias else {})}


def conv(name, inputs, outputs, size=1, bias=True):
    return {f"{name}.weight": (outputs, inputs, size, size), **({f"{name}.bias": (outputs,)} if bias else {})}


def resnet(blocks, name, is_bottleneck, stages=4, groups=1):
    """`name(part)`: the authors' name of torchvision's part, such as layer1.0.conv1."""
    found = {**conv(name("conv1"), 3, 64, 7, bias=False), **norm(name("bn1"), 64)}
    before = 64
    for stage in range(stages):
        inner = 64 * 2**stage
        after = 4 * inner if is_bottleneck else inner
        wide = inner * 2 if groups > 1 else inner  # ResNeXt: 32 groups of 4 × 2^stage channels
        for block in range(blocks[stage]):
            here = f"layer{stage + 1}.{block}"
            if is_bottleneck:
                sizes = [(before, wide, 1), (wide // groups, wide, 3), (wide, after, 1)]
            else:
                sizes = [(before, inner, 3), (inner, inner, 3)]
            for number, (inputs, outputs, size) in enumerate(sizes, 1):
                found |= conv(name(f"{here}.conv{number}"), inputs, outputs, size, bias=False)
                found |= norm(name(f"{here}.bn{number}"), outputs)
            if before != after:
                found |= conv(name(f"{here}.downsample.0"), before, after, bias=False)
                found |= norm(name(f"{here}.downsample.1"), after)
            before = after
    return found


def in_sequence(prefix):
    """torchvision's children in a Sequential: conv1, bn1, relu, maxpool, layer1 …"""
    places = {"conv1": 0, "bn1": 1, "layer1": 4, "layer2": 5, "layer3": 6, "layer4": 7}

    def name(part):
        first, _, rest = part.partition(".")
        return f"{prefix}.{places[first]}" + (f".{rest}" if rest else "")

    return name


def in_pycls(prefix):
    def name(part):
        first, *rest = part.split(".")
        if first in ("conv1", "bn1"):
            return f"{prefix}.stem.{first[:-1]}"
        block, what, *more = rest
        places = {"downsample.0": "proj", "downsample.1": "bn"}
        places |= {f"conv{n}": f"f.{letter}" for n, letter in enumerate("abc", 1)}
        places |= {f"bn{n}": f"f.{letter}_bn" for n, letter in enumerate("abc", 1)}
        return f"{prefix}.s{first[-1]}.b{int(block) + 1}.{places['.'.join([what, *more])]}"

    return name


def in_classy(wrapper):
    def name(part):
        first, *rest = part.split(".")
        if first in ("conv1", "bn1"):
            return f"backbone.initial_block._module.{0 if first == 'conv1' else 1}"
        stage, (block, *what) = int(first[-1]) - 1, rest
        places = {"conv1": 0, "bn1": 1, "conv2": 3, "bn2": 4, "conv3": 6}
        inner = f"convolutional_block.{places[what[0]]}" if what[0] in places else ".".join(what).replace("bn3", "bn")
        return f"backbone.blocks.{stage}.{wrapper.format(stage=stage, block=block)}.{inner}"

    return name


def dinov2(prefix, width, depth, side):
    found = {f"{prefix}cls_token": (1, 1, width), f"{prefix}pos_embed": (1, 1 + side * side, width)}
    found |= {f"{prefix}mask_token": (1, width), **conv(f"{prefix}patch_embed.proj", 3, width, 14)}
    for block in range(depth):
        here = f"{prefix}blocks.{block}"
        found |= {**norm(f"{here}.norm1", width, False), **norm(f"{here}.norm2", width, False)}
        found |= {**linear(f"{here}.attn.qkv", width, 3 * width), **linear(f"{here}.attn.proj", width, width)}
        found |= {**linear(f"{here}.mlp.fc1", width, 4 * width), **linear(f"{here}.mlp.fc2", 4 * width, width)}
        found |= {f"{here}.ls1.gamma": (width,), f"{here}.ls2.gamma": (width,)}
    return {**found, **norm(f"{prefix}norm", width, False)}


def sscd_torchvision(dimensions=512, blocks=(2, 2, 2, 2), is_bottleneck=False):
    channels = 2048 if is_bottleneck else 512
    return {**resnet(blocks, "backbone.{}".format, is_bottleneck), **linear("backbone.fc", channels, dimensions)}


def sscd_classy(wrapper="block{stage}-{block}", dimensions=1024, blocks=(3, 4, 23, 3), groups=32):
    return {**resnet(blocks, in_classy(wrapper), True, groups=groups), **linear("embeddings.1", 2048, dimensions)}


def cosplace(dimensions=512, blocks=(2, 2, 2, 2), is_bottleneck=False):
    channels = 2048 if is_bottleneck else 512
    found = resnet(blocks, in_sequence("backbone"), is_bottleneck)
    return {**found, "aggregation.1.p": (1,), **linear("aggregation.3", channels, dimensions)}


def cosplace_vgg(dimensions=512):
    found, before = {}, 3
    for place, channels in zip(
        (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28), [64] * 2 + [128] * 2 + [256] * 3 + [512] * 6, strict=True
    ):
        found |= conv(f"backbone.{place}", before, channels, 3)
        before = channels
    return {**found, "aggregation.1.p": (1,), **linear("aggregation.3", 512, dimensions)}


def mixvpr(projected=1024, rows=4, depth=4, side=20, blocks=(3, 4, 6), is_bottleneck=True):
    cells, channels = side * side, 1024 if is_bottleneck else 256
    found = resnet(blocks, "backbone.model.{}".format, is_bottleneck, stages=3)
    for layer in range(depth):
        here = f"aggregator.mix.{layer}.mix"
        found |= {
            **norm(f"{here}.0", cells, False),
            **linear(f"{here}.1", cells, cells),
            **linear(f"{here}.3", cells, cells),
        }
    found |= linear("aggregator.channel_proj", channels, projected)
    return {**found, **linear("aggregator.row_proj", cells, rows)}


def boq_head(channels, width, queries, layers, rows):
    found = {**conv("aggregator.proj_c", channels, width, 3), **norm("aggregator.norm_input", width, False)}
    for layer in range(layers):
        here = f"aggregator.boqs.{layer}"
        found |= {f"{here}.queries": (1, queries, width)}
        found |= {**norm(f"{here}.norm_q", width, False), **norm(f"{here}.norm_out", width, False)}
        for attention in ("self_attn", "cross_attn", "encoder.self_attn"):
            found |= {f"{here}.{attention}.in_proj_weight": (3 * width, width)}
            found |= {f"{here}.{attention}.in_proj_bias": (3 * width,)}
            found |= linear(f"{here}.{attention}.out_proj", width, width)
        found |= {
            **linear(f"{here}.encoder.linear1", width, 4 * width),
            **linear(f"{here}.encoder.linear2", 4 * width, width),
        }
        found |= {**norm(f"{here}.encoder.norm1", width, False), **norm(f"{here}.encoder.norm2", width, False)}
    return {**found, **linear("aggregator.fc", layers * queries, rows)}


def boq_resnet(width=512, queries=64, layers=2, rows=32, blocks=(3, 4, 6), is_bottleneck=True):
    found = resnet(blocks, in_sequence("backbone.net"), is_bottleneck, stages=3)
    return {**found, **boq_head(1024 if is_bottleneck else 256, width, queries, layers, rows)}


def boq_dino(width=768, depth=12, side=37, projected=384, queries=64, layers=2, rows=32):
    return {**dinov2("backbone.dino.", width, depth, side), **boq_head(width, projected, queries, layers, rows)}


def salad(
    width=768, depth=12, side=37, clusters=64, channels=128, scene=256, hidden=512, prefix="backbone.model.", agg=""
):
    found = dinov2(prefix, width, depth, side)
    here = f"aggregator.{agg}"
    found |= {f"{here}dust_bin": (), **linear(f"{here}token_features.0", width, hidden)}
    found |= linear(f"{here}token_features.2", hidden, scene)
    for name, outputs in (("cluster_features", channels), ("score", clusters)):
        found |= {**conv(f"{here}{name}.0", width, hidden), **conv(f"{here}{name}.3", hidden, outputs)}
    return found


def megaloc(dimensions=8448, channels=256, clusters=64, scene=256, prefix="backbone.model.", **sizes):
    found = salad(channels=channels, clusters=clusters, scene=scene, prefix=prefix, agg="agg.", **sizes)
    if prefix == "backbone.":  # the file on the hub has no mask token
        del found["backbone.mask_token"]
    return {**found, **linear("aggregator.linear", channels * clusters + scene, dimensions)}


def delg(dimensions=512, hidden=512, blocks=(3, 4, 6, 3), is_bottleneck=True):
    found = resnet(blocks, in_pycls("globalmodel"), is_bottleneck)
    lower = 1024 if is_bottleneck else 256
    found |= {"globalmodel.head.pool.p": (1,), **linear("globalmodel.head.fc", 2 * lower, dimensions)}
    found |= {**conv("localmodel.conv1", lower, hidden), **norm("localmodel.bn", hidden)}
    return {**found, **conv("localmodel.conv2", hidden, 1), "desc_cls.weight": (5, dimensions), "desc_cls.t": (1,)}


def superglobal(dimensions=2048, blocks=(3, 4, 6, 3), is_bottleneck=True):
    found = resnet(blocks, in_pycls("encoder_q"), is_bottleneck)
    channels = 2048 if is_bottleneck else 512
    found |= {"encoder_q.head.pool.p": (1,), **linear("encoder_q.head.fc", channels, dimensions)}
    return {**found, **conv("conv2ds.0", 1024, 256, 3, bias=False), **linear("cv_learner.fc", 4, 2)}
