// examples/cpp/deploy.cpp: runs a model that TVM compiled on an image, and prints which of its 1,000 classes it sees:
// deploy LIBRARY.so GRAPH.json MODEL.params IMAGE.bin, where IMAGE.bin holds 1 x 3 x 224 x 224 float32 numbers.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

#include "heddle/heddle.hpp"

int main(int argc, char **argv) try {
  if (argc != 5) throw std::invalid_argument("LIBRARY.so GRAPH.json MODEL.params IMAGE.bin");
  const auto context = heddle::Context::process();
  heddle::ModelOptions options;
  options.library = heddle::Module::load(context, argv[1]);
  const heddle::Executor executor(heddle::Model::load(context, argv[2], options, argv[3]));

  const auto image = heddle::Tensor::create<float>({1, 3, 224, 224});
  std::ifstream file(argv[4], std::ios::binary);
  if (!file.read(static_cast<char *>(image.data()), static_cast<std::streamsize>(image.bytes())))
    throw std::runtime_error(std::string(argv[4]) + ": this is no file of 150528 float32 numbers");

  executor.set_input("data", image);
  executor.run();
  const auto scores = executor.output<float>();
  const auto best = std::max_element(scores.begin(), scores.end());
  std::printf("class %td, score %.9g\n", best - scores.begin(), static_cast<double>(*best));
  return 0;
} catch (const std::exception &e) {
  std::fprintf(stderr, "deploy: %s\n", e.what());
  return 1;
}
