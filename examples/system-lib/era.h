/* What the objects of this example need of TVM's headers, and the frame of a blob with one model in it. TVM writes such
 * objects itself when a model is compiled with --system-lib; here they are written by hand so that they can be read. */
#ifndef ERA_H
#define ERA_H

#include <stdint.h>

typedef struct DLTensor {
  void *data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;

typedef union TVMValue {
  int64_t v_int64;
  double v_float64;
  void *v_handle;
} TVMValue;

/* Of libheddle_tvm.so. */
int TVMBackendRegisterSystemLibSymbol(const char *name, void *address);
void TVMAPISetLastError(const char *words);

#define ERA_TEXT(words) \
  { sizeof words - 1, words }
#define ERA_STRING(words) \
  struct __attribute__((packed)) { \
    uint64_t bytes; \
    char text[sizeof words - 1]; \
  }

/* A blob: a model whose one parameter is a vector of four floats, and the library as what it imports. All numbers are
 * little-endian, and nothing is aligned. */
#define ERA_BLOB(GRAPH) \
  struct __attribute__((packed)) { \
    uint64_t bytes, records; \
    ERA_STRING("GraphExecutorFactory") model; \
    ERA_STRING(GRAPH) graph; \
    uint64_t params, names; \
    ERA_STRING("p0") name; \
    uint64_t magic, reserved; \
    int32_t device_type, device_id, ndim; \
    uint8_t code, bits; \
    uint16_t lanes; \
    int64_t shape, data_bytes; \
    float data[4]; \
    ERA_STRING("default") model_name; \
    ERA_STRING("_lib") library; \
    ERA_STRING("_import_tree") tree; \
    uint64_t rows, row[3], children, child; \
  }

#define ERA_BLOB_OF(GRAPH, blob, ...) \
  { \
    .bytes = sizeof blob - 8, .records = 3, .model = ERA_TEXT("GraphExecutorFactory"), .graph = ERA_TEXT(GRAPH), \
    .params = 1, .names = 1, .name = ERA_TEXT("p0"), .magic = UINT64_C(0xDD5E40F096B4A13F), .device_type = 1, \
    .ndim = 1, .code = 2, .bits = 32, .lanes = 1, .shape = 4, .data_bytes = 16, .data = {__VA_ARGS__}, \
    .model_name = ERA_TEXT("default"), .library = ERA_TEXT("_lib"), .tree = ERA_TEXT("_import_tree"), .rows = 3, \
    .row = {0, 1, 1}, .children = 1, .child = 1 \
  }

#endif
