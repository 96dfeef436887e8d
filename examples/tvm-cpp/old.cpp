// examples/tvm-cpp/old.cpp: a deployment as it was written for TVM v0.4 to v0.7: tvm.graph_runtime.create, DLContext,
// dmlc/logging.h, kDLGPU.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <dlpack/dlpack.h>
#include <dmlc/logging.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

static std::string read_file(const char *path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file) << path << ": it cannot be read";
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

int main(int argc, char **argv) {
  if (argc != 7) return 2;
  try {
    const std::string json = read_file(argv[2]), params = read_file(argv[3]), input = read_file(argv[5]);
    DLContext ctx{kDLCPU, 0};
    tvm::runtime::Module lib = tvm::runtime::Module::LoadFromFile(argv[1]);
    tvm::runtime::Module mod = (*tvm::runtime::Registry::Get("tvm.graph_runtime.create"))(
        json, lib, static_cast<int>(ctx.device_type), ctx.device_id);
    TVMByteArray bytes{params.data(), params.size()};
    tvm::runtime::PackedFunc load_params = mod.GetFunction("load_params");
    load_params(bytes);
    tvm::runtime::NDArray x = mod.GetFunction("get_input")(argv[4]);
    x.CopyFromBytes(input.data(), input.size());
    mod.GetFunction("set_input")(argv[4], x);
    mod.GetFunction("run")();
    tvm::runtime::NDArray y = mod.GetFunction("get_output")(0);
    std::string out(tvm::runtime::GetDataSize(*y.operator->()), '\0');
    y.CopyToBytes(&out[0], out.size());
    std::ofstream(argv[6], std::ios::binary).write(out.data(), static_cast<std::streamsize>(out.size()));
    if (ctx.device_type == kDLGPU) LOG(WARNING) << "not here";
  } catch (const dmlc::Error &e) {
    std::fprintf(stderr, "old: %s\n", e.what());
    return 1;
  }
  return 0;
}
