// examples/tvm-cpp/factory.cpp: a library that contains graph and parameters: the module's function "default" makes the
// executor. Also shows what the executor knows of its inputs and outputs.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <tvm/runtime/device_api.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>

using tvm::runtime::Module;
using tvm::runtime::NDArray;
using tvm::runtime::PackedFunc;

static void infer(const char *library, const char *name, const char *input, const char *output) {
  DLDevice dev{kDLCPU, 0};
  Module factory = Module::LoadFromFile(library);
  Module gmod = factory.GetFunction("default")(dev);
  PackedFunc set_input = gmod.GetFunction("set_input");
  PackedFunc get_input = gmod.GetFunction("get_input");
  PackedFunc get_output = gmod.GetFunction("get_output");
  PackedFunc run = gmod.GetFunction("run");
  LOG(INFO) << gmod->type_key() << " on " << tvm::runtime::DeviceName(dev.device_type) << ": "
            << static_cast<int>(gmod.GetFunction("get_num_outputs")()) << " outputs";

  std::ifstream file(input, std::ios::in | std::ios::binary);
  ICHECK(file.good()) << input << ": it cannot be read";
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  NDArray like = get_input(name);
  ICHECK(like != nullptr) << "there is no input " << name;
  NDArray x = NDArray::Empty(like.Shape(), like.DataType(), dev);
  x.CopyFromBytes(bytes.data(), bytes.size());
  set_input(name, x);
  run();
  NDArray y = get_output(0);
  std::vector<char> result(tvm::runtime::GetDataSize(*y.operator->()));
  y.CopyToBytes(result.data(), result.size());
  std::ofstream(output, std::ios::out | std::ios::binary)
      .write(result.data(), static_cast<std::streamsize>(result.size()));
  std::cout << "output " << y.Shape() << " " << y.DataType() << std::endl;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: factory LIBRARY NAME INPUT OUTPUT\n");
    return 2;
  }
  try {
    infer(argv[1], argv[2], argv[3], argv[4]);
  } catch (const tvm::runtime::Error &e) {
    std::fprintf(stderr, "factory: %s\n", e.what());
    return 1;
  }
  return 0;
}
