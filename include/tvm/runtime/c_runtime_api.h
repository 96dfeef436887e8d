/* tvm/runtime/c_runtime_api.h: TVM's C runtime API, as of v0.14, that Heddle implements: link with libheddle_tvm.so.
 * Written for Heddle; names, values and layouts are TVM's. docs/tvm-c-api.md says what each function does here.
 *
 * Functions return 0, or -1 when they failed: TVMGetLastError() then has this thread's words (-2: a function of the
 * application said that it left an error of its own). Handles are counted; each is given back by its own function.
 * Strings and bytes that a call returns live until this thread's next result of that kind. Any thread; functions block
 * until what they started is done. */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#ifndef TVM_DLL
#if defined(__GNUC__)
#define TVM_DLL __attribute__((visibility("default")))
#else
#define TVM_DLL
#endif
#endif

#define TVM_VERSION "0.14.0"

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type of sizes and shapes. */
typedef int64_t tvm_index_t;

/* Types of devices beside DLPack's. */
typedef enum { kDLAOCL = 32, kDLSDAccel, kOpenGL, kDLMicroDev, TVMDeviceExtType_End } TVMDeviceExtType;

/* What a TVMValue is. */
typedef enum {
  kTVMArgInt = kDLInt,
  kTVMArgFloat = kDLFloat,
  kTVMOpaqueHandle = 3U,
  kTVMNullptr = 4U,
  kTVMDataType = 5U,
  kDLDevice = 6U,
  kTVMDLTensorHandle = 7U,
  kTVMObjectHandle = 8U,
  kTVMModuleHandle = 9U,
  kTVMPackedFuncHandle = 10U,
  kTVMStr = 11U,
  kTVMBytes = 12U,
  kTVMNDArrayHandle = 13U,
  kTVMObjectRValueRefArg = 14U,
  kTVMExtBegin = 15U,
  kTVMNNVMFirst = 16U,
  kTVMNNVMLast = 20U,
  kTVMExtReserveEnd = 64U,
  kTVMExtEnd = 128U
} TVMArgTypeCode;

/* As it was called up to v0.7. */
#define kTVMContext kDLDevice
typedef DLDevice TVMContext;

typedef DLTensor *TVMArrayHandle;
typedef void *TVMModuleHandle;
typedef void *TVMFunctionHandle;
typedef void *TVMRetValueHandle; /* where a TVMPackedCFunc puts its result */
typedef void *TVMStreamHandle;
typedef void *TVMObjectHandle;

typedef union TVMValue {
  int64_t v_int64;
  double v_float64;
  void *v_handle;
  const char *v_str;
  DLDataType v_type;
  DLDevice v_device;
  DLDevice v_ctx; /* as it was called up to v0.7 */
} TVMValue;

typedef struct TVMByteArray {
  const char *data;
  size_t size;
} TVMByteArray;

/* A function of the application. It may change args and type_codes; it sets its result by TVMCFuncSetReturn. 0, or -1
 * after TVMAPISetLastError. */
typedef int (*TVMPackedCFunc)(TVMValue *args, int *type_codes, int num_args, TVMRetValueHandle ret,
                              void *resource_handle);
typedef void (*TVMPackedCFuncFinalizer)(void *resource_handle);

/* ---- errors */

TVM_DLL const char *TVMGetLastError(void);
TVM_DLL void TVMAPISetLastError(const char *msg);
TVM_DLL void TVMAPISetLastPythonError(void *py_object); /* borrowed: who sets it keeps it alive */
TVM_DLL void *TVMGetLastPythonError(void);              /* NULL: none */
TVM_DLL void TVMDropLastPythonError(void);
TVM_DLL const char *TVMGetLastBacktrace(void); /* always NULL */

/* ---- modules */

TVM_DLL int TVMModLoadFromFile(const char *file_name, const char *format, TVMModuleHandle *out);
TVM_DLL int TVMModImport(TVMModuleHandle mod, TVMModuleHandle dep);
TVM_DLL int TVMModGetFunction(TVMModuleHandle mod, const char *func_name, int query_imports, TVMFunctionHandle *out);
TVM_DLL int TVMModFree(TVMModuleHandle mod);

/* ---- functions */

TVM_DLL int TVMFuncFree(TVMFunctionHandle func);
TVM_DLL int TVMFuncCall(TVMFunctionHandle func, TVMValue *arg_values, int *type_codes, int num_args, TVMValue *ret_val,
                        int *ret_type_code);
TVM_DLL int TVMCFuncSetReturn(TVMRetValueHandle ret, TVMValue *value, int *type_code, int num_ret);
TVM_DLL int TVMCbArgToReturn(TVMValue *value, int *code);
TVM_DLL int TVMFuncCreateFromCFunc(TVMPackedCFunc func, void *resource_handle, TVMPackedCFuncFinalizer fin,
                                   TVMFunctionHandle *out);
TVM_DLL int TVMFuncRegisterGlobal(const char *name, TVMFunctionHandle f, int override);
TVM_DLL int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out);
TVM_DLL int TVMFuncListGlobalNames(int *out_size, const char ***out_array);
TVM_DLL int TVMFuncRemoveGlobal(const char *name);

/* ---- arrays */

TVM_DLL int TVMArrayAlloc(const tvm_index_t *shape, int ndim, int dtype_code, int dtype_bits, int dtype_lanes,
                          int device_type, int device_id, TVMArrayHandle *out);
TVM_DLL int TVMArrayFree(TVMArrayHandle handle);
TVM_DLL int TVMArrayCopyFromBytes(TVMArrayHandle handle, void *data, size_t nbytes);
TVM_DLL int TVMArrayCopyToBytes(TVMArrayHandle handle, void *data, size_t nbytes);
TVM_DLL int TVMArrayCopyFromTo(TVMArrayHandle from, TVMArrayHandle to, TVMStreamHandle stream);
TVM_DLL int TVMArrayFromDLPack(DLManagedTensor *from, TVMArrayHandle *out);
TVM_DLL int TVMArrayToDLPack(TVMArrayHandle from, DLManagedTensor **out);
TVM_DLL void TVMDLManagedTensorCallDeleter(DLManagedTensor *dltensor);

/* ---- streams */

TVM_DLL int TVMStreamCreate(int device_type, int device_id, TVMStreamHandle *out);
TVM_DLL int TVMStreamFree(int device_type, int device_id, TVMStreamHandle stream);
TVM_DLL int TVMSetStream(int device_type, int device_id, TVMStreamHandle handle);
TVM_DLL int TVMSynchronize(int device_type, int device_id, TVMStreamHandle stream);
TVM_DLL int TVMStreamStreamSynchronize(int device_type, int device_id, TVMStreamHandle src, TVMStreamHandle dst);

/* ---- objects: modules, functions and arrays */

TVM_DLL int TVMObjectGetTypeIndex(TVMObjectHandle obj, unsigned *out_tindex);
TVM_DLL int TVMObjectTypeKey2Index(const char *type_key, unsigned *out_tindex);
TVM_DLL int TVMObjectTypeIndex2Key(unsigned tindex, char **out_type_key); /* freed with free() */
TVM_DLL int TVMObjectRetain(TVMObjectHandle obj);
TVM_DLL int TVMObjectFree(TVMObjectHandle obj);
TVM_DLL int TVMObjectDerivedFrom(uint32_t child_type_index, uint32_t parent_type_index, int *is_derived);
TVM_DLL int TVMByteArrayFree(TVMByteArray *arr);

/* ---- memory of devices */

TVM_DLL int TVMDeviceAllocDataSpace(DLDevice dev, size_t nbytes, size_t alignment, DLDataType type_hint,
                                    void **out_data);
TVM_DLL int TVMDeviceAllocDataSpaceWithScope(DLDevice dev, int ndim, const int64_t *shape, DLDataType dtype,
                                             const char *mem_scope, void **out_data);
TVM_DLL int TVMDeviceFreeDataSpace(DLDevice dev, void *ptr);
TVM_DLL int TVMDeviceCopyDataFromTo(DLTensor *from, DLTensor *to, TVMStreamHandle stream);

#ifdef __cplusplus
}
#endif

#endif
