"""examples/c built against an installation by CMake, and examples/cpp by pkg-config.
labels: slow soak
timeout: 600
"""
from test_examples_cpp_installed import by_cmake, by_pkg_config


def test_cmake_in_c(tmp_path):
    by_cmake("c", tmp_path)


def test_pkg_config_in_cpp(tmp_path):
    by_pkg_config("cpp", tmp_path)
