/* modules/tvm/executor_object.h: an executor as a module, as its files see it: libheddle's executor, and the memory that
 * stands for its inputs and outputs where arrays of them were handed out or lent. One thread at a time. */
#ifndef HEDDLE_MODULES_TVM_EXECUTOR_OBJECT_H
#define HEDDLE_MODULES_TVM_EXECUTOR_OBJECT_H

#include "heddle/heddle.h"
#include "modules/tvm/args.h"
#include "modules/tvm/json.h"

/* An input or an output. */
typedef struct heddle__slot {
  heddle_tensor *bound;  /* what libheddle's executor reads or writes in place; NULL: its own memory */
  heddle_tensor *device; /* the caller's memory on a device, copied to or from bound with each run; else NULL */
  bool lent;             /* bound is the caller's, of set_input_zero_copy or set_output_zero_copy */
  bool is_param;         /* of an input: it came with parameters */
} heddle__slot;

typedef struct heddle__runner {
  heddle_object head;
  heddle_context *ctx;    /* holds a reference */
  heddle_graph *graph;    /* so does this, and the library */
  heddle_module *library; /* or NULL */
  char *devices;          /* a list of names */
  heddle_executor *ex;
  heddle_model *model;
  heddle__slot *inputs, *outputs;
  uint32_t n_inputs, n_outputs;
  bool started;         /* a run was tried */
  bool used;            /* more happened than set_input: parameters that come now are inputs, no constants */
  bool debug;           /* has the debug executor's methods */
  bool moves;           /* some slot has device */
  bool changed;         /* an input, since the values below were taken */
  heddle_executor *all; /* keeps the values of a run; NULL: none are there */
  int64_t executed;     /* the last node of execute_node; -1: none */
} heddle__runner;

/* The executor of a graph that was read; params may be NULL. As heddle__executor_object. */
heddle_object *heddle__executor_make(heddle_graph *graph, heddle_module *library, const int32_t (*devices)[2],
                                     uint32_t n_devices, heddle_params *params, bool debug);

/* Makes model and executor anew, with these parameters as constants; inputs that were set stay set. */
heddle_status heddle__executor_remake(heddle__runner *o, heddle_params *params, heddle_error *err);

/* The object that a method is called on. */
static inline heddle__runner *heddle__executor_self(void *self) {
  return self;
}

/* NULL: it is no executor. */
heddle__runner *heddle__executor_of(heddle_object *o);

/* executor_ports.c: an input or output that argument i names, by number or name. -1 with words that say which there are;
 * with soft, -2 without words for an input's name that is none. */
int32_t heddle__executor_input(heddle__runner *o, const heddle__args *a, int32_t i, bool soft);
int32_t heddle__executor_output(heddle__runner *o, const heddle__args *a, int32_t i);

const char *heddle__output_node(const heddle__runner *o, uint32_t i); /* the name of an output's node */

/* Sets an input to a tensor, by copying. */
heddle_status heddle__executor_set(heddle__runner *o, uint32_t i, heddle_tensor *value, heddle_error *err);

/* A run, with the copies to and from memory on devices. */
heddle_status heddle__executor_go(heddle__runner *o, heddle_error *err);

/* A copy of an output of the last run, with the dtype and shape that it has, on a device or (NULL) the host. */
heddle_status heddle__output_copy(heddle_executor *ex, uint32_t i, heddle_device *to, heddle_tensor **out,
                                  heddle_error *err);

/* executor_values.c: runs once with the present inputs and keeps all values. */
heddle_status heddle__values_take(heddle__runner *o, heddle_error *err);
/* A copy of the value that was kept; NULL: it was not, or memory is out. */
heddle_tensor *heddle__values_get(heddle__runner *o, uint32_t node, uint32_t output);
void heddle__values_forget(heddle__runner *o);

/* executor_info.c: facts of inputs or outputs, one after another, and then all of them as the result of a method, where s
 * is HEDDLE_OK. */
typedef struct heddle__info {
  heddle__sheet shape, dtype;
} heddle__info;
void heddle__info_add(heddle__info *info, const char *name, const heddle_io_info *io);
int heddle__info_answer(heddle__info *info, const char *method, heddle_status s, const heddle_error *err,
                        heddle__word *ret, int32_t *ret_code);

/* HEDDLE_EINVAL: an input or output that cannot be handed out yet. */
heddle_status heddle__executor_no_shape(const char *what, const char *name, heddle_error *err);

/* The methods. */

/* executor_inputs.c */
HEDDLE__METHOD(heddle__executor_set_input);
HEDDLE__METHOD(heddle__executor_set_input_zero_copy);
HEDDLE__METHOD(heddle__executor_get_input);
HEDDLE__METHOD(heddle__executor_get_input_index);
HEDDLE__METHOD(heddle__executor_get_input_info);
HEDDLE__METHOD(heddle__executor_get_num_inputs);

/* executor_params.c */
HEDDLE__METHOD(heddle__executor_load_params);
HEDDLE__METHOD(heddle__executor_share_params);
HEDDLE__METHOD(heddle__executor_get_graph_json);
HEDDLE__METHOD(heddle__executor_get_graph_params);

/* executor_outputs.c */
HEDDLE__METHOD(heddle__executor_set_output_zero_copy);
HEDDLE__METHOD(heddle__executor_get_output);
HEDDLE__METHOD(heddle__executor_get_output_info);
HEDDLE__METHOD(heddle__executor_get_num_outputs);
HEDDLE__METHOD(heddle__executor_run);
HEDDLE__METHOD(heddle__executor_run_from_inputs);

/* executor_debug.c */
HEDDLE__METHOD(heddle__executor_debug_get_output);
HEDDLE__METHOD(heddle__executor_execute_node);
HEDDLE__METHOD(heddle__executor_get_node_output);
HEDDLE__METHOD(heddle__executor_profile);

/* executor_times.c */
HEDDLE__METHOD(heddle__executor_run_individual);
HEDDLE__METHOD(heddle__executor_run_individual_node);

#endif
