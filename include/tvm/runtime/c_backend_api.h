/* tvm/runtime/c_backend_api.h: what code that TVM compiled calls in its host, as of v0.14, and Heddle implements: link with
 * libheddle_tvm.so. Written for Heddle; names and layouts are TVM's. A program needs it only to write such code itself. */
#ifndef TVM_RUNTIME_C_BACKEND_API_H_
#define TVM_RUNTIME_C_BACKEND_API_H_

#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A compiled function. out_ret_tcode says "none" (kTVMNullptr) when it is called. */
typedef int (*TVMBackendPackedCFunc)(TVMValue *args, int *type_codes, int num_args, TVMValue *out_ret_value,
                                     int *out_ret_tcode, void *resource_handle);

/* A function by name: a kernel of the modules inside of the library, one of the modules that it imports, or one that is
 * registered. mod_node: what the library's __tvm_module_ctx holds. *out is borrowed, and stays valid. */
TVM_DLL int TVMBackendGetFuncFromEnv(void *mod_node, const char *func_name, TVMFunctionHandle *out);

/* Scratch memory, aligned to 128 bytes; NULL with words. Given back in the opposite order, by the same thread. */
TVM_DLL void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
                                       int dtype_bits_hint);
TVM_DLL int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr);

/* Runs flambda(i, env, cdata) for all i below env->num_task, which is num_task (0: as many as there are threads) or
 * less; they all run at once, and may wait for one another by the barrier. */
typedef struct TVMParallelGroupEnv {
  void *sync_handle;
  int32_t num_task;
} TVMParallelGroupEnv;

typedef int (*FTVMParallelLambda)(int task_id, TVMParallelGroupEnv *penv, void *cdata);

TVM_DLL int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void *cdata, int num_task);
TVM_DLL int TVMBackendParallelBarrier(int task_id, TVMParallelGroupEnv *penv);

/* Registers a function or a variable of an object that is linked into the program: what constructors of objects compiled
 * with --system-lib call, before main or later. name is copied; a name that comes again takes the new address. */
TVM_DLL int TVMBackendRegisterSystemLibSymbol(const char *name, void *ptr);

/* Runs f(cdata) once for a handle that begins as NULL. */
TVM_DLL int TVMBackendRunOnce(void **handle, int (*f)(void *), void *cdata, int nbytes);

#ifdef __cplusplus
}
#endif

#endif
