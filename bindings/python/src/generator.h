/* bindings/python/src/generator.h: generators, for the file that makes batches of them. */
#ifndef HEDDLE_PYTHON_GENERATOR_H
#define HEDDLE_PYTHON_GENERATOR_H

#include <stdbool.h>

#include "options.h"

typedef struct heddle_py_generator {
  PyObject_HEAD heddle_generator *g;
  PyObject *context;
  char *file;
  bool is_busy; /* a call uses g, perhaps without the GIL */
} heddle_py_generator;

/* NULL with an exception where it is none. */
heddle_py_generator *heddle_py_generator_of(PyObject *object);

typedef struct heddle_py_sampling {
  heddle_sampling s;
  int64_t *tokens; /* both are freed by the caller */
  float *biases;
} heddle_py_sampling;

/* (temperature, top_k, top_p, min_p, repetition_penalty, seed, [(token, bias), ...]); 0, or -1 with an exception. */
int heddle_py_sampling_parse(PyObject *given, heddle_py_sampling *out);

#endif
