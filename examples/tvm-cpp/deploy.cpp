// examples/tvm-cpp/deploy.cpp: plain deployment: a library, a graph and parameters in files of their own. Runs the model
// with a DLTensor of TVMArrayAlloc, then with NDArrays, and writes the first output.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <dlpack/dlpack.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

static std::string read_file(const std::string &path) {
  std::ifstream file(path, std::ios::in | std::ios::binary);
  if (!file) throw std::runtime_error(path + ": it cannot be read");
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// "1,784"
static std::vector<int64_t> parse_shape(const std::string &text) {
  std::vector<int64_t> shape;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) shape.push_back(std::stoll(part));
  return shape;
}

static int64_t count(const DLTensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->ndim; i++) n *= t->shape[i];
  return n;
}

static void deploy(char **argv) {
  const std::string graph = read_file(argv[2]), params = read_file(argv[3]), input = read_file(argv[6]);
  const std::vector<int64_t> in_shape = parse_shape(argv[5]);
  const int device_type = kDLCPU, device_id = 0;

  tvm::runtime::Module library = tvm::runtime::Module::LoadFromFile(argv[1]);
  const tvm::runtime::PackedFunc *create = tvm::runtime::Registry::Get("tvm.graph_executor.create");
  CHECK(create != nullptr) << "there is no graph executor";
  tvm::runtime::Module mod = (*create)(graph, library, device_type, device_id);

  TVMByteArray bytes;
  bytes.data = params.c_str();
  bytes.size = params.length();
  mod.GetFunction("load_params")(bytes);

  // By DLTensor.
  DLTensor *x = nullptr;
  CHECK_EQ(
      TVMArrayAlloc(in_shape.data(), static_cast<int>(in_shape.size()), kDLFloat, 32, 1, device_type, device_id, &x), 0)
      << TVMGetLastError();
  CHECK_EQ(input.size(), static_cast<size_t>(count(x)) * sizeof(float)) << "the input has another size";
  std::copy(input.begin(), input.end(), static_cast<char *>(x->data));
  tvm::runtime::PackedFunc set_input = mod.GetFunction("set_input");
  tvm::runtime::PackedFunc run = mod.GetFunction("run");
  tvm::runtime::PackedFunc get_output = mod.GetFunction("get_output");
  set_input(argv[4], x);
  run();
  tvm::runtime::NDArray shared = get_output(0);
  DLTensor *y = nullptr;
  CHECK_EQ(TVMArrayAlloc(shared->shape, shared->ndim, kDLFloat, 32, 1, device_type, device_id, &y), 0)
      << TVMGetLastError();
  get_output(0, y);
  const float *first = static_cast<const float *>(y->data);
  const std::vector<float> scores(first, first + count(y));
  TVMArrayFree(x);
  TVMArrayFree(y);

  // By NDArray.
  const DLDevice dev{kDLCPU, 0};
  tvm::runtime::NDArray in = tvm::runtime::NDArray::Empty(in_shape, DLDataType{kDLFloat, 32, 1}, dev);
  in.CopyFromBytes(input.data(), input.size());
  set_input(argv[4], in);
  run();
  tvm::runtime::NDArray out = tvm::runtime::NDArray::Empty(shared.Shape(), shared->dtype, dev);
  get_output(0, out);
  std::vector<float> again(scores.size());
  out.CopyToBytes(again.data(), again.size() * sizeof(float));
  CHECK(again == scores) << "the two runs differ";

  std::ofstream file(argv[7], std::ios::out | std::ios::binary);
  file.write(reinterpret_cast<const char *>(scores.data()),
             static_cast<std::streamsize>(scores.size() * sizeof(float)));
  std::cout << "output " << out.Shape() << " " << out.DataType() << ", greatest at "
            << std::max_element(scores.begin(), scores.end()) - scores.begin() << std::endl;
}

int main(int argc, char **argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: deploy LIBRARY GRAPH PARAMS NAME SHAPE INPUT OUTPUT\n");
    return 2;
  }
  try {
    deploy(argv);
  } catch (const std::runtime_error &e) {
    std::fprintf(stderr, "deploy: %s\n", e.what());
    return 1;
  }
  return 0;
}
