#!/usr/bin/env python3
"""Writes the programs of this folder: a step of scanned layers x + w2 tanh(w1 x), sharded in several ways.

    make.py                      every program of the tests
    make.py --print MESH FORM    one to stdout, of any size (--help): the study of docs/adr/0003-collectives.md

Forms: manual (explicit collectives, the axes in the order of --scatter), shardy (constraints, XLA's partitioner).
--parts splits every weight into parts that walk the axes in different orders: "0,1/1,0".
"""
import argparse
import itertools
import math
import pathlib


def groups(mesh, axes):
    """The groups of devices along some axes of a row-major mesh."""
    found = {}
    for device, at in enumerate(itertools.product(*(range(size) for size in mesh))):
        found.setdefault(tuple(x for i, x in enumerate(at) if i not in axes), []).append(device)
    return list(found.values())


def tensor(dtype, shape):
    return "tensor<" + "x".join([str(size) for size in shape] + [dtype]) + ">"


class Program:
    def __init__(self, mesh):
        self.mesh, self.lines, self.count, self.channel = mesh, [], 0, 0
        self.num_devices = math.prod(mesh)
        self.names = [f"d{i}" for i in range(len(mesh))]
        self.all_axes = "{" + ", ".join(f'"{name}"' for name in self.names) + "}"

    def line(self, text):
        self.lines.append("    " + text)

    def op(self, text, kind):
        self.count += 1
        self.line(f"%v{self.count} = {text} : {kind}")
        return f"%v{self.count}"

    def sharding(self, *dims):
        return f"<@mesh, [{', '.join(dims)}]>"

    # A value is a name, a dtype and a shape.
    def unary(self, name, value, dtype=None, shape=None, extra=""):
        to = dtype or value[1], shape or value[2]
        kind = f"({tensor(value[1], value[2])}) -> {tensor(*to)}"
        return self.op(f"stablehlo.{name} {value[0]}{extra}", kind), *to

    def binary(self, name, a, b):
        return self.op(f"stablehlo.{name} {a[0]}, {b[0]}", tensor(a[1], a[2])), a[1], a[2]

    def constant(self, text, dtype, shape=()):
        return self.op(f"stablehlo.constant dense<{text}>", tensor(dtype, shape)), dtype, list(shape)

    def dot(self, a, dim_a, b, dim_b):
        shape = [s for i, s in enumerate(a[2]) if i != dim_a] + [s for i, s in enumerate(b[2]) if i != dim_b]
        kind = f"({tensor(a[1], a[2])}, {tensor(b[1], b[2])}) -> {tensor(a[1], shape)}"
        text = f"stablehlo.dot_general {a[0]}, {b[0]}, contracting_dims = [{dim_a}] x [{dim_b}]"
        return self.op(text, kind), a[1], shape

    def layer_of(self, stack, index):
        sizes = ", ".join(str(size) for size in [1] + stack[2][1:])
        starts = ", ".join([index] + ["%zero"] * (len(stack[2]) - 1))
        kind = f"({tensor(stack[1], stack[2])}, {', '.join(['tensor<i32>'] * len(stack[2]))}) -> "
        one = self.op(f"stablehlo.dynamic_slice {stack[0]}, {starts}, sizes = [{sizes}]",
                      kind + tensor(stack[1], [1] + stack[2][1:]))
        return self.unary("reshape", (one, stack[1], [1] + stack[2][1:]), shape=stack[2][1:])

    def put_layer(self, stack, value, index):
        one = self.unary("reshape", value, shape=[1] + value[2])
        starts = ", ".join([index] + ["%zero"] * (len(stack[2]) - 1))
        kind = f"({tensor(stack[1], stack[2])}, {tensor(one[1], one[2])}, {', '.join(['tensor<i32>'] * len(stack[2]))})"
        return self.op(f"stablehlo.dynamic_update_slice {stack[0]}, {one[0]}, {starts}",
                       f"{kind} -> {tensor(stack[1], stack[2])}"), stack[1], stack[2]

    def collective(self, name, value, axes, shape, extra=""):
        self.channel += 1
        self.count += 1
        lists = groups(self.mesh, axes)
        attributes = (f"{extra}channel_handle = #stablehlo.channel_handle<handle = {self.channel}, type = 1>, "
                      f"replica_groups = dense<{lists}> : tensor<{len(lists)}x{len(lists[0])}xi64>, use_global_device_ids")
        dtype, region = value[1], ""
        if name != "all_gather":
            region = (f" ({{\n    ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):\n"
                      f"      %s = stablehlo.add %a, %b : tensor<{dtype}>\n      stablehlo.return %s : tensor<{dtype}>\n    }})")
        self.line(f'%v{self.count} = "stablehlo.{name}"({value[0]}) <{{{attributes}}}>{region} : '
                  f"({tensor(dtype, value[2])}) -> {tensor(dtype, shape)}")
        return f"%v{self.count}", dtype, shape

    def all_gather(self, value, axes, dim):
        shape = list(value[2])
        shape[dim] *= math.prod(self.mesh[axis] for axis in axes)
        return self.collective("all_gather", value, axes, shape, f"all_gather_dim = {dim} : i64, ")

    def reduce_scatter(self, value, axes, dim):
        shape = list(value[2])
        shape[dim] //= math.prod(self.mesh[axis] for axis in axes)
        return self.collective("reduce_scatter", value, axes, shape, f"scatter_dimension = {dim} : i64, ")

    def all_reduce(self, value):
        return self.collective("all_reduce", value, range(len(self.mesh)), list(value[2]))

    # ---- weights in parts: part p is a range of the other dim, and its blocks lie in the order of its axes ----

    def parts_of(self, value, dim, num_parts):
        other, width = 1 - dim, value[2][1 - dim] // num_parts
        for part in range(num_parts):
            ranges = [f"0:{size}" for size in value[2]]
            ranges[other] = f"{part * width}:{(part + 1) * width}"
            shape = list(value[2])
            shape[other] = width
            yield self.unary("slice", value, shape=shape, extra=f" [{', '.join(ranges)}]")

    def reorder(self, value, dim, from_axes, to_axes):
        """Blocks of dim that lie row-major in from_axes are laid row-major in to_axes."""
        if from_axes == to_axes:
            return value
        before, after = value[2][:dim], value[2][dim + 1:]
        blocks = [self.mesh[axis] for axis in from_axes]
        shape = before + blocks + [value[2][dim] // math.prod(blocks)] + after
        order = list(range(len(shape)))
        order[dim:dim + len(blocks)] = [dim + from_axes.index(axis) for axis in to_axes]
        split = self.unary("reshape", value, shape=shape)
        moved = self.unary("transpose", split, shape=[shape[i] for i in order], extra=f", dims = {order}")
        return self.unary("reshape", moved, shape=list(value[2]))

    def concatenate(self, values, dim):
        shape = list(values[0][2])
        shape[dim] = sum(value[2][dim] for value in values)
        kind = f"({', '.join(tensor(v[1], v[2]) for v in values)}) -> {tensor(values[0][1], shape)}"
        return self.op(f"stablehlo.concatenate {', '.join(v[0] for v in values)}, dim = {dim}", kind), values[0][1], shape


def flat(walk):
    return [axis for stage in walk for axis in stage]


def make(options):
    p = Program(options.mesh)
    manual, fault, num_layers = options.form == "manual", options.fault, options.layers
    dim, ffn, tokens = options.dim, options.ffn, options.tokens * (1 if manual else p.num_devices)
    stored = (lambda size: size // p.num_devices) if manual else (lambda size: size)
    whole_w2 = fault == "replicated"
    x_kind = "bf16", [tokens, dim]
    stack_kind = "bf16", [num_layers, tokens, dim]
    w1_kind = "f32", [num_layers, stored(ffn), dim]
    w2_kind = "f32", [num_layers, dim if whole_w2 else stored(dim), ffn]
    axes = sorted(flat(options.scatter))

    def gather(value):
        value = p.unary("convert", value, "bf16")
        if not manual:
            return p.op(f"sdy.sharding_constraint {value[0]} {p.sharding('{}', '{}')}", tensor(*value[1:])), *value[1:]
        walks = options.parts or [options.scatter]
        parts = list(p.parts_of(value, 0, len(walks))) if len(walks) > 1 else [value]
        for stage in range(max(len(walk) for walk in walks)):
            for i, walk in enumerate(walks):
                if stage < len(walk):
                    parts[i] = p.all_gather(parts[i], walk[::-1][stage], 0)
        parts = [p.reorder(part, 0, flat(walk), axes) for part, walk in zip(parts, walks)]
        return p.concatenate(parts, 1) if len(parts) > 1 else parts[0]

    def scatter(value):
        if not manual:
            placed = p.sharding(p.all_axes, "{}")
            value = p.op(f"sdy.sharding_constraint {value[0]} {placed}", tensor(*value[1:])), *value[1:]
        elif fault == "all_reduced":
            value = p.all_reduce(value)
            rows = value[2][0] // p.num_devices
            device = p.unary("convert", (p.op("stablehlo.partition_id", "tensor<ui32>"), "ui32", []), "i32")
            start = p.binary("multiply", device, p.constant(rows, "i32"))
            kind = f"({tensor(*value[1:])}, tensor<i32>, tensor<i32>) -> {tensor(value[1], [rows, value[2][1]])}"
            text = f"stablehlo.dynamic_slice {value[0]}, {start[0]}, %zero, sizes = [{rows}, {value[2][1]}]"
            value = p.op(text, kind), value[1], [rows, value[2][1]]
        else:
            walks = options.parts or [options.scatter]
            parts = list(p.parts_of(value, 0, len(walks))) if len(walks) > 1 else [value]
            parts = [p.reorder(part, 0, axes, flat(walk)) for part, walk in zip(parts, walks)]
            for stage in range(max(len(walk) for walk in walks)):
                for i, walk in enumerate(walks):
                    if stage < len(walk):
                        parts[i] = p.reduce_scatter(parts[i], walk[stage], 0)
            value = p.concatenate(parts, 1) if len(parts) > 1 else parts[0]
        return p.unary("convert", value, "f32")

    def forward(x, index, w1, w2):
        a = gather(p.layer_of(w1, index))
        b = p.unary("convert", p.layer_of(w2, index), "bf16") if whole_w2 else gather(p.layer_of(w2, index))
        h = p.dot(x, 1, a, 1)
        h = p.op(f"stablehlo.tanh {h[0]}", tensor(*h[1:])), *h[1:]
        return p.binary("add", x, p.dot(h, 1, b, 1)), a, b, h

    def loop(result, state, names, body):
        kinds = ", ".join(tensor(*kind) for _, kind in state)
        inits = ", ".join(f"{name} = {init}" for name, (init, _) in zip(names, state))
        p.line(f"{result}:{len(state)} = stablehlo.while({inits}) : {kinds}")
        p.line(f"cond {{ %c = stablehlo.compare LT, {names[0]}, %num, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>")
        p.line("stablehlo.return %c : tensor<i1> } do {")
        results = body()
        p.line(f"stablehlo.return {', '.join(results)} : {kinds} }}")

    for name, value in (("zero", 0), ("one", 1), ("num", num_layers), ("last", num_layers - 1)):
        p.line(f"%{name} = stablehlo.constant dense<{value}> : tensor<i32>")
    counter, one = ("i32", []), ("%one", "i32", [])

    def forward_body():
        y = forward(("%fx", *x_kind), "%fi", ("%fw1", *w1_kind), ("%fw2", *w2_kind))[0]
        saved = p.put_layer(("%fs", *stack_kind), ("%fx", *x_kind), "%fi")
        return p.binary("add", ("%fi", *counter), one)[0], y[0], "%fw1", "%fw2", saved[0]

    stack = p.constant("0.0", *stack_kind)
    loop("%f", [("%zero", counter), ("%x", x_kind), ("%w1", w1_kind), ("%w2", w2_kind), (stack[0], stack_kind)],
         ["%fi", "%fx", "%fw1", "%fw2", "%fs"], forward_body)

    def backward_body():
        index = p.binary("subtract", ("%last", *counter), ("%bi", *counter))[0]
        saved = p.layer_of(("%bs", *stack_kind), index)
        p.line(f"%bar:2 = stablehlo.optimization_barrier %bd, {saved[0]} : {tensor(*x_kind)}, {tensor(*x_kind)}")
        dy, x = ("%bar#0", *x_kind), ("%bar#1", *x_kind)
        _, a, b, h = forward(x, index, ("%bw1", *w1_kind), ("%bw2", *w2_kind))
        one_minus = p.binary("subtract", p.constant("1.0", *h[1:]), p.binary("multiply", h, h))
        dh = p.binary("multiply", p.dot(dy, 1, b, 0), one_minus)
        dw1, dw2 = p.dot(dh, 0, x, 0), p.dot(dy, 0, h, 0)
        dx = p.binary("add", p.dot(dh, 1, a, 0), dy)
        if fault == "gathered":
            dx = p.all_gather(dx, list(range(len(p.mesh))), 0)
            dx = p.unary("slice", dx, shape=x_kind[1], extra=f" [0:{tokens}, 0:{dim}]")
        g1 = scatter(dw1)
        g2 = p.unary("convert", p.all_reduce(dw2), "f32") if whole_w2 else scatter(dw2)
        g1 = p.put_layer(("%bg1", *w1_kind), g1, index)
        g2 = p.put_layer(("%bg2", *w2_kind), g2, index)
        return p.binary("add", ("%bi", *counter), one)[0], dx[0], "%bw1", "%bw2", "%bs", g1[0], g2[0]

    zero1, zero2 = p.constant("0.0", *w1_kind), p.constant("0.0", *w2_kind)
    loop("%b", [("%zero", counter), ("%f#1", x_kind), ("%w1", w1_kind), ("%w2", w2_kind), ("%f#4", stack_kind),
                (zero1[0], w1_kind), (zero2[0], w2_kind)], ["%bi", "%bd", "%bw1", "%bw2", "%bs", "%bg1", "%bg2"],
         backward_body)
    p.line(f"%o1 = stablehlo.subtract %w1, %b#5 : {tensor(*w1_kind)}")
    p.line(f"%o2 = stablehlo.subtract %w2, %b#6 : {tensor(*w2_kind)}")

    places = [p.sharding(p.all_axes, "{}"), p.sharding("{}", p.all_axes, "{}"),
              p.sharding("{}", "{}" if whole_w2 else p.all_axes, "{}")]
    wholes = [tensor("bf16", [options.tokens * p.num_devices, dim]), tensor("f32", [num_layers, ffn, dim]),
              tensor("f32", [num_layers, dim, ffn])]
    locals_ = [tensor(*x_kind), tensor(*w1_kind), tensor(*w2_kind)]
    alias = ["", ", tf.aliasing_output = 0 : i32", ", tf.aliasing_output = 1 : i32"]
    outer = ["%gx", "%gw1", "%gw2"] if manual else ["%x", "%w1", "%w2"]
    arguments = ", ".join(f"{name}: {kind} {{sdy.sharding = #sdy.sharding{place}{more}}}"
                          for name, kind, place, more in zip(outer, wholes, places, alias))
    results = ", ".join(f"{kind} {{sdy.sharding = #sdy.sharding{place}}}" for kind, place in zip(wholes[1:], places[1:]))
    mesh = ", ".join(f'"{name}"={size}' for name, size in zip(p.names, p.mesh))
    head = [f"module @fsdp attributes {{mhlo.num_partitions = {p.num_devices} : i32, mhlo.num_replicas = 1 : i32}} {{",
            f"  sdy.mesh @mesh = <[{mesh}]>", f"  func.func public @main({arguments}) -> ({results}) {{"]
    tail = [f"    return %o1, %o2 : {wholes[1]}, {wholes[2]}"]
    if manual:
        inner = ", ".join(f"{name}: {kind}" for name, kind in zip(["%x", "%w1", "%w2"], locals_))
        head.append(f"    %r:2 = sdy.manual_computation({', '.join(outer)}) in_shardings=[{', '.join(places)}] "
                    f"out_shardings=[{', '.join(places[1:])}] manual_axes={p.all_axes} ({inner}) {{")
        tail = [f"    sdy.return %o1, %o2 : {locals_[1]}, {locals_[2]}",
                f"    }} : ({', '.join(wholes)}) -> ({', '.join(wholes[1:])})",
                f"    return %r#0, %r#1 : {wholes[1]}, {wholes[2]}"]
    return "\n".join(head + p.lines + tail + ["  }", "}", ""])


def make_gather(mesh, rows):
    """One all-gather over all devices."""
    p = Program(mesh)
    part, whole = ("bf16", [rows // p.num_devices, rows]), ("bf16", [rows * p.num_devices, rows])
    place = p.sharding(p.all_axes, "{}")
    result = p.all_gather(("%part", *part), list(range(len(mesh))), 0)
    mesh_text = ", ".join(f'"{name}"={size}' for name, size in zip(p.names, mesh))
    stored = tensor("bf16", [rows, rows])
    return "\n".join([
        f"module @gather attributes {{mhlo.num_partitions = {p.num_devices} : i32, mhlo.num_replicas = 1 : i32}} {{",
        f"  sdy.mesh @mesh = <[{mesh_text}]>",
        f"  func.func public @main(%x: {stored} {{sdy.sharding = #sdy.sharding{place}}}) -> "
        f"({tensor(*whole)} {{sdy.sharding = #sdy.sharding{place}}}) {{",
        f"    %r = sdy.manual_computation(%x) in_shardings=[{place}] out_shardings=[{place}] "
        f"manual_axes={p.all_axes} (%part: {tensor(*part)}) {{", *p.lines,
        f"    sdy.return {result[0]} : {tensor(*result[1:])}", f"    }} : ({stored}) -> {tensor(*whole)}",
        f"    return %r : {tensor(*whole)}", "  }", "}", ""])


def walk(text):
    """ "0,1+2": axis 0, then 1 and 2 together."""
    return [[int(axis) for axis in stage.split("+")] for stage in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", nargs=2, metavar=("MESH", "FORM"))
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--ffn", type=int, default=2048)
    parser.add_argument("--tokens", type=int, default=384, help="on one device")
    parser.add_argument("--scatter", help='how gradients walk the axes, gathers the other way: "0,1"; default: in order')
    parser.add_argument("--parts", type=lambda text: [walk(part) for part in text.split("/")])
    parser.add_argument("--fault", choices=["all_reduced", "gathered", "replicated"])
    options = parser.parse_args()

    def one(mesh, form, scatter=None, fault=None):
        options.mesh = [int(size) for size in mesh.split("x")]
        options.form, options.fault = form, fault
        options.scatter = walk(scatter) if scatter else [[axis] for axis in range(len(options.mesh))]
        return make(options)

    if options.print:
        print(one(*options.print, options.scatter, options.fault), end="")
        return
    folder = pathlib.Path(__file__).parent
    for name, text in {
            "fsdp_per_axis": one("4x4", "manual"), "fsdp_shardy": one("4x4", "shardy"),
            "fsdp_one_group_2x2x2x2": one("2x2x2x2", "manual", "0+1+2+3"),
            "all_reduced_gradient": one("4x4", "manual", fault="all_reduced"),
            "gathered_activations": one("4x4", "manual", fault="gathered"),
            "replicated_weight": one("4x4", "manual", fault="replicated"), "gather_4x4x8": make_gather([8, 4, 4], 1024)
    }.items():
        (folder / f"{name}.mlir").write_text(text)


if __name__ == "__main__":
    main()
