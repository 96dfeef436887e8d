# CUDA through the driver's API, libcuda.so.1, which is opened at run time, as are NVRTC, cuBLASLt and cuDNN: nothing of
# NVIDIA's is needed to build. Most of it is plugins/common/gpu.
set(plugin_gpu ON)
