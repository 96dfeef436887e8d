/* generate/gguf.h: files of llama.cpp (docs/gguf.md): what is in one, its weights as numbers, and the graph of its model. */
#ifndef HEDDLE_GENERATE_GGUF_H
#define HEDDLE_GENERATE_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "generate/generator.h"

/* A text of the file, which is not terminated. */
typedef struct heddle__gguf_text {
  const char *data;
  uint64_t bytes;
} heddle__gguf_text;

typedef struct heddle__gguf_value {
  heddle__gguf_text key;
  uint32_t type; /* of the value, or of an array's elements */
  bool is_array;
  uint64_t count;      /* of an array */
  const uint8_t *data; /* of the first element */
} heddle__gguf_value;

typedef struct heddle__gguf_tensor {
  heddle__gguf_text name;
  uint32_t type, ndim;
  uint64_t dims[4]; /* the fastest first */
  const uint8_t *data;
  uint64_t bytes, count;
} heddle__gguf_tensor;

/* Everything points into the file's bytes. */
typedef struct heddle__gguf {
  const char *path;
  heddle__gguf_value *values;
  heddle__gguf_tensor *tensors;
  uint64_t n_values, n_tensors;
} heddle__gguf;

/* HEDDLE_EFORMAT with the place, the key or the tensor; HEDDLE_EUNSUPPORTED for a version or a type of tensors. After
 * HEDDLE_OK it is freed. */
heddle_status heddle__gguf_parse(const void *data, size_t bytes, const char *path, heddle__gguf *out,
                                 heddle_error *err);
void heddle__gguf_free(heddle__gguf *f);

/* By name; NULL: there is none. "%s.x" of keys begins with the architecture. */
const heddle__gguf_tensor *heddle__gguf_tensor_of(const heddle__gguf *f, const char *name);
const heddle__gguf_value *heddle__gguf_value_of(const heddle__gguf *f, const char *key);

/* A number, or false: there is none, or it is of another kind. */
bool heddle__gguf_whole(const heddle__gguf_value *v, int64_t *out);
bool heddle__gguf_real(const heddle__gguf_value *v, double *out);
heddle__gguf_text heddle__gguf_string(const heddle__gguf_value *v); /* empty where it is none */

/* gguf_blocks.c: BLOCK_* of a type, BLOCK_NONE for float32 and types that are not known. */
enum { HEDDLE__GGUF_F32 = 0 };
int heddle__gguf_form(uint32_t type);

/* Bytes of so many elements; 0: the type is not known, or does not divide them. And the elements. */
uint64_t heddle__gguf_bytes(uint32_t type, uint64_t count, uint64_t row);
void heddle__gguf_read(const heddle__gguf_tensor *t, float *out);

/* gguf_graph.c: reads the file and makes graph, parameters and configuration of it. max_length 0: the file's. */
heddle_status heddle__gguf_model(heddle_context *ctx, const char *path, const heddle_model_options *options,
                                 uint32_t max_length, heddle__generate_config *config, heddle_graph **graph,
                                 heddle_params **params, heddle_error *err);
bool heddle__gguf_is(const char *path);

#endif
