/* The cuda plugin: NVIDIA's devices, through the driver's API. Here are the entry, what differs from AMD's (gpu_vendor),
 * and the root table; everything else is in plugins/common/gpu, settings in its instance.c, and here: nvrtc (nvrtc.c),
 * cublaslt and cudnn (the files of their names). */
#include "cuda.h"

#include "plugins/common/gpu/entry.h"

static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};

static const gpu_vendor vendor = {
    .name = "cuda",
    .api = "CUDA",
    .device_type = HEDDLE_DEVICE_CUDA,
    .libraries = names,
    .symbols = cuda_symbols,
    .formats = "cubin,ptx,fatbin,cuda",
    .launch_limit_x = 2147483647,
    .open = cuda_open,
    .close = cuda_close,
    .code_words = cuda_code_words,
    .fate = cuda_fate,
    .describe = cuda_describe,
    .context_get = cuda_context_get,
    .context_put = cuda_context_put,
    .enter = cuda_enter,
    .leave = cuda_leave,
    .context_device = cuda_context_device,
    .peer_enable = cuda_peer_enable,
    .peer_copy = cuda_peer_copy,
    .instantiate = cuda_instantiate,
    .compile = cuda_compile,
    .compiler_words = cuda_compiler_words,
    .library = &cuda_libraries,
    .can_compile = cuda_can_compile,
    .needs = "CUDA 11.0 (driver 450)",
};

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  return gpu_open_instance(&vendor, host, out, err);
}

static const heddle_psetting settings[] = {
    GPU_SETTINGS,
    P_SETTING_WORD("context", "auto", "auto,primary,own",
                   "primary: the process's context; own: one of the device's own; auto: its own after the process's "
                   "was lost"),
    P_SETTING_PATH("nvrtc", "", "the library of NVRTC, which compiles the kernels; none: looked for; off: none"),
    P_SETTING_PATH("cublaslt", "", "the library of cuBLASLt; none: looked for; off: not used"),
    P_SETTING_PATH("cudnn", "", "the library of cuDNN; none: looked for; off: not used"),
    P_SETTING_TEXT("tensor_cores", "", "off: does not use the plugin's own kernel for products in bfloat16"),
};

static const heddle_plugin table = GPU_PLUGIN("cuda", open_instance, settings);

const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  return gpu_plugin_entry(&table, host, err);
}
