from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="kit",
    ext_modules=[CppExtension("kit_cpp", ["ops.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
