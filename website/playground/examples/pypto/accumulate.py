import pypto.language as pl

ROWS = 64
WIDTH = 128


@pl.jit
def accumulate(
    x: pl.Tensor[[ROWS, WIDTH], pl.FP32],
    total: pl.Out[pl.Tensor[[ROWS, WIDTH], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="accumulate"):
        total[:, :] = pl.add(total[:, :], x[:, :])
    return total


def build_accumulate_specs(rows: int = ROWS, width: int = WIDTH):
    import torch
    from golden import TensorSpec

    return [
        TensorSpec("x", [rows, width], torch.float32, init_value=torch.randn),
        TensorSpec("total", [rows, width], torch.float32, init_value=torch.ones, is_output=True),
    ]


def golden_accumulate(tensors):
    tensors["total"][:] += tensors["x"]


if __name__ == "__main__":
    from golden import run_jit

    run_jit(fn=accumulate, specs=build_accumulate_specs(), golden_fn=golden_accumulate)
