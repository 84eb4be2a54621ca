import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import buffer_ops

THREADS = 64


@flyc.kernel
def fill_kernel(Y: fx.Tensor, value: fx.Float32, n: fx.Int32):
    y = buffer_ops.create_buffer_resource(Y, num_records_bytes=fx.Int64(n) * 4)
    buffer_ops.buffer_store(value, y, fx.block_idx.x * THREADS + fx.thread_idx.x)


@flyc.jit
def fill(Y: fx.Tensor, value: fx.Float32, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    fill_kernel(Y, value).launch(grid=(n // THREADS, 1, 1), block=(THREADS, 1, 1), stream=stream)
