#!/usr/bin/env python3
"""Reads exported ML Packages with Apple's own tools: its package reader, its definition of every
operation (which infers every type anew), and its reader of weight files. Compares them with the
bundle's MIL text, those of vision blocks with the configuration, and both with the checkpoint. Needs the package `coremltools` (9.0 was used).

  ml_package_coremltools_test.py CLEFKIT CHECKPOINTS      the folder of the golden ones"""
import json
import logging
import math
import pathlib
import re
import subprocess
import sys
import tempfile

logging.disable(logging.WARNING)  # The predicting half of coremltools is absent outside macOS.
import numpy
from coremltools.converters.mil.frontend.milproto.load import load
from coremltools.converters.mil.mil import types
from coremltools.libmilstoragepython import _BlobStorageReader
from coremltools.models.utils import load_spec
from coremltools.proto import FeatureTypes_pb2

# Checkpoint and flags of `convert`: between them every kind of program, with palettes and without.
CONVERSIONS = {"micro": ["micro", "--min-weights", "1024"],
               "tied": ["tied", "--min-weights", "1024", "--palette", "grid8"],
               "tied, split, FP16": ["tied", "--plan", "split"]}
EVERY_KIND = {"run", "attention", "mlp", "tail", "vision"}
PATCHES = 1024  # Of a vision program's call.
FLOAT16 = FeatureTypes_pb2.ArrayFeatureType.FLOAT16
VARIABLE = r"(?:tensor<(\w+), \[([\d, ]*)\]>|(\w+)) (\w+)"  # A type and a name.


def shape_of(text):
    return tuple(int(size) for size in text.split(",")) if text else ()


def variables(text):
    """(name, element type, shape) of each in `tensor<fp16, [1, 4]> a, int32 b`."""
    return [(name, dtype or scalar, shape_of(shape))
            for dtype, shape, scalar, name in re.findall(VARIABLE, text)]


class Text:
    """MIL text, as far as this test needs it; read line by line, apart from clefkit's own parser."""

    def __init__(self, text):
        lines = text.splitlines()
        self.inputs = variables(next(line for line in lines if line.lstrip().startswith("func main<ios18>("))
                                .split("(", 1)[1])
        self.outputs = re.search(r"\} -> \(([\w, ]+)\);", text)[1].split(", ")
        # (operation, results, offsets into the weight file) of every statement.
        self.statements = [(op, variables(results), [int(at) for at in re.findall(r"offset = uint64\((\d+)\)", rest)])
                           for results, op, rest in re.findall(r"^        (\S.*?) = (\w+)\((.*\]);$", text, re.M)]


def described(variable):
    return variable.name, types.builtin_to_string(variable.dtype), tuple(variable.shape)


def checkpoint_tensors(folder):
    """Every BF16 tensor by name, as float32."""
    tensors = {}
    for path in folder.glob("*.safetensors"):
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8:8 + size]).items():
            if name == "__metadata__" or entry["dtype"] != "BF16":
                continue
            begin, end = entry["data_offsets"]
            bits = numpy.frombuffer(data, "<u2", (end - begin) // 2, 8 + size + begin).astype(numpy.uint32)
            tensors[name] = (bits << 16).view(numpy.float32).reshape(entry["shape"])
    return tensors


def port_differences(spec, text):
    results = {name: (name, dtype, shape) for _, outputs, _ in text.statements for name, dtype, shape in outputs}
    for kind, features, expected in (("input", spec.description.input, text.inputs),
                                     ("output", spec.description.output, [results[n] for n in text.outputs])):
        found = [(f.name, "fp16" if f.type.multiArrayType.dataType == FLOAT16 else "another type",
                  tuple(f.type.multiArrayType.shape)) for f in features]
        if found != expected:
            yield f"the model describes the {kind}s {found}, expected {expected}"


def operations_of(function, text):
    """Operations by the text's statements. What `load` makes of values that stand in an argument is none of them."""
    names = {name for _, results, _ in text.statements for name, _, _ in results}
    return [operation for operation in function.operations if names & {v.name for v in operation.outputs}]


def operation_differences(function, text):
    if [described(v) for v in function.inputs.values()] != text.inputs:
        yield f"inputs {[described(v) for v in function.inputs.values()]}, expected {text.inputs}"
    if [v.name for v in function.outputs] != text.outputs:
        yield f"outputs {[v.name for v in function.outputs]}, expected {text.outputs}"
    operations = operations_of(function, text)
    if len(operations) != len(text.statements):
        yield f"{len(operations)} operations, expected {len(text.statements)}"
    arguments = 2 * sum(op == "constexpr_lut_to_dense" for op, _, _ in text.statements)  # Indices, palettes.
    if len(function.operations) != len(text.statements) + arguments:
        yield f"{len(function.operations)} operations with arguments, expected {len(text.statements) + arguments}"
    for operation, (op, results, _) in zip(operations, text.statements):
        found = operation.op_type, [described(v) for v in operation.outputs]
        if found != (op, results):
            yield f"{found}, expected {(op, results)}"
            return


def dense_values(operation):
    """What Apple takes a constant for: a palette is looked up by its code."""
    if operation.op_type == "const":
        return operation.outputs[0].val
    return operation.materialized_val_inference()


def weight_differences(function, text, weights, errors, tensors):
    by_offset = {weight["offset"]: weight for weight in weights}
    for operation, (_, _, offsets) in zip(operations_of(function, text), text.statements):
        if not offsets or offsets[0] not in by_offset:
            continue
        weight = by_offset.pop(offsets[0])
        original = tensors[weight["name"]].reshape(-1).astype(float)
        read = numpy.asarray(dense_values(operation)).reshape(-1).astype(float)
        if read.size != original.size:
            yield f"{weight['name']}: {read.size} values, expected {original.size}"
            continue
        error = math.sqrt(((read - original) ** 2).sum() / (original ** 2).sum())
        expected = errors.get(weight["name"], 0)
        if abs(error - expected) > 1e-4 or (weight["kind"] == "lut6") != (expected > 0):
            yield f"{weight['name']} ({weight['kind']}): relative RMSE {error}, expected {expected}"
    for offset, weight in by_offset.items():
        yield f"{weight['name']} at {offset}: no operation reads it"


def blob_differences(path, weights):
    reader = _BlobStorageReader(str(path))
    for weight in weights:
        count = math.prod(weight["shape"])
        if weight["kind"] == "lut6":
            found = (reader.read_uint6_data(weight["offset"]).size,
                     reader.read_fp16_data(weight["palette_offset"]).size)
            expected = (count, weight["shape"][0] // 16 * 64)
        else:
            found, expected = reader.read_fp16_data(weight["offset"]).size, count
        if found != expected:
            yield f"{weight['name']}: {found} elements in the weight file, expected {expected}"


def refuses_a_wrong_type(spec, weights):
    """Whether the inference notices one dimension of one result that was changed."""
    changed = type(spec)()
    changed.CopyFrom(spec)
    (function,) = changed.mlProgram.functions.values()
    operation = function.block_specializations[function.opset].operations[-1]
    operation.outputs[0].type.tensorType.dimensions[-1].constant.size += 1
    try:
        load(changed, spec.specificationVersion, str(weights))
    except AssertionError as error:
        return "Mismatch between var types" in str(error)
    return False


def package_differences(package, text, weights, errors, tensors):
    spec = load_spec(str(package))  # By Manifest.json, with Apple's package reader.
    weight_file = package / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"
    program = load(spec, spec.specificationVersion, str(weight_file.parent))
    function = program.functions["main"]
    yield from port_differences(spec, text)
    yield from operation_differences(function, text)
    yield from blob_differences(weight_file, weights)
    yield from weight_differences(function, text, weights, errors, tensors)
    if not refuses_a_wrong_type(spec, weight_file.parent):
        yield "a wrong dimension went unnoticed, expected a refusal"


def vision_differences(package, block, config, tensors):
    """No text of it is kept: Apple's reader compares the package's types with those that it infers."""
    spec = load_spec(str(package))
    weights = package / "Data" / "com.apple.CoreML" / "weights"
    function = load(spec, spec.specificationVersion, str(weights)).functions["main"]
    hidden, half = config["hidden_size"], config["hidden_size"] // config["num_heads"] // 2
    expected = {"x": (1, hidden, 1, PATCHES), "cos": (1, half, 1, PATCHES), "sin": (1, half, 1, PATCHES),
                "mask": (1, 1, PATCHES, PATCHES)}
    inputs = {name: tuple(variable.shape) for name, variable in function.inputs.items()}
    if inputs != expected:
        yield f"inputs {inputs}, expected {expected}"
    (output,) = function.outputs
    if described(output) != ("x_out", "fp16", expected["x"]):
        yield f"output {described(output)}, expected x_out as x"
    constants = [numpy.asarray(op.outputs[0].val).reshape(-1) for op in function.operations if op.op_type == "const"]
    prefix = f"model.visual.blocks.{block}."
    names = [name for name in tensors if name.startswith(prefix)]
    if len(names) != 12:  # Two norms and four linear layers, each with a bias.
        yield f"the checkpoint has {len(names)} tensors of this block, expected 12"
    for name in names:
        rounded = tensors[name].astype(numpy.float16).reshape(-1)
        if not any(numpy.array_equal(rounded, constant) for constant in constants):
            yield f"{name}: no constant has its values"
    if not refuses_a_wrong_type(spec, weights):
        yield "a wrong dimension went unnoticed, expected a refusal"


def main():
    clefkit, checkpoints = sys.argv[1], pathlib.Path(sys.argv[2])
    found, kinds, operations, palettes = [], set(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for conversion, (checkpoint, *flags) in CONVERSIONS.items():
            tensors = checkpoint_tensors(checkpoints / checkpoint)
            bundle, out = pathlib.Path(folder, conversion), pathlib.Path(folder, conversion + "-packages")
            subprocess.run([clefkit, "convert", checkpoints / checkpoint, "-o", bundle, "--quiet", *flags], check=True)
            subprocess.run([clefkit, "export", bundle, "--format", "coreml", "-o", out, "--quiet"], check=True)
            manifest = json.loads((bundle / "manifest.json").read_text())
            errors = {tensor["name"]: tensor["relative_rmse"] for tensor in manifest["quantization"]["tensors"]}
            vision = json.loads((checkpoints / checkpoint / "config.json").read_text())["vision_config"]
            blocks = {f"vision-{block:02}": block for block in range(vision["depth"])}
            if {p.name for p in out.iterdir()} != {name + ".mlpackage" for name in
                                                   [*(p["name"] for p in manifest["programs"]), *blocks]}:
                found.append(f"{conversion}: other packages than programs")
            for name, block in blocks.items():
                kinds.add("vision")
                try:
                    found += [f"{conversion}: {name}: {difference}" for difference in vision_differences(
                        out / (name + ".mlpackage"), block, vision, tensors)]
                except Exception as error:
                    found.append(f"{conversion}: {name}: {type(error).__name__}: {error}")
            for program in manifest["programs"]:
                text = Text((bundle / program["mil"]).read_text())
                weights = [w for w in manifest["weights"] if w["blob"] == program["weights"]]
                kinds.add(program["kind"])
                operations += len(text.statements)
                palettes += sum(op == "constexpr_lut_to_dense" for op, _, _ in text.statements)
                try:
                    found += [f"{conversion}: {program['name']}: {difference}" for difference in package_differences(
                        out / (program["name"] + ".mlpackage"), text, weights, errors, tensors)]
                except Exception as error:  # Whatever Apple's code makes of a wrong package.
                    found.append(f"{conversion}: {program['name']}: {type(error).__name__}: {error}")
    if kinds != EVERY_KIND or palettes == 0:
        found.append(f"programs of the kinds {sorted(kinds)} with {palettes} palettized weights, expected all kinds")
    print("\n".join(found) if found else
          f"{operations} operations, {palettes} of them palettes, have the types that Apple infers")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
