// examples/cpp/digits.cpp: reads 360 handwritten digits and counts how many it gets right: digits FOLDER [DEVICES]
// FOLDER is examples/digits, DEVICES a list in order of preference such as cpu,sim:0.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "heddle/heddle.hpp"

int main(int argc, char **argv) try {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "digits FOLDER [DEVICES]\n");
    return 2;
  }
  const std::string folder = argv[1];
  heddle::ModelOptions options;
  options.devices = argc > 2 ? argv[2] : "";
  options.flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS; // the file has wishes of its own about devices

  const auto context = heddle::Context::process();
  const auto model = heddle::Model::load(context, folder + "/digits.json", options);
  const heddle::Executor executor(model);
  const auto images = heddle::Tensor::load_npy(folder + "/images.npy").view<std::uint8_t>(); // [n, 1, 8, 8]
  const auto labels = heddle::Tensor::load_npy(folder + "/labels.npy").view<std::int64_t>(); // [n]

  // The runs read and write these two themselves.
  const auto image = heddle::Tensor::create<float>({1, 1, 8, 8}).view<float>();
  const auto likely = heddle::Tensor::create<float>({1, 10}).view<float>();
  executor.bind_input("image", image.tensor());
  executor.bind_output(0, likely.tensor());

  int right = 0;
  for (std::size_t i = 0; i < labels.size(); i++) {
    std::copy_n(images.begin() + 64 * i, 64, image.begin());
    executor.run();
    right += std::max_element(likely.begin(), likely.end()) - likely.begin() == labels[i];
  }
  std::printf("%d of %zu digits right\n", right, labels.size());
  return 0;
} catch (const std::exception &e) {
  std::fprintf(stderr, "digits: %s\n", e.what());
  return 1;
}
