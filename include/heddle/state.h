/* heddle/state.h: state values of an executor: an output that is the input of the next run, and stays in its device's
 * memory between runs (docs/state.md). The model option `state` says which they are. After a run that succeeded, what the
 * run computed for the output is the value of the input; after one that failed, the value is what it was before. A value
 * that was not written begins with zeroes: with length 0 along each dimension that the graph leaves open, unless another
 * input has a dimension of the same name.
 *
 * The input of a state value cannot be bound and the output cannot be bound; heddle_executor_set_input writes the value,
 * and the output functions read it. Use these functions from the executor's thread. While a run is pending they return
 * HEDDLE_EBUSY. */
#ifndef HEDDLE_STATE_H
#define HEDDLE_STATE_H

#include "heddle/executor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_STATE_ALL UINT32_MAX /* in place of a position: all state values */
#define HEDDLE_STATE_NO_AXIS UINT32_MAX

/* Names and shape are borrowed until the executor is used again. */
typedef struct heddle_state_info {
  size_t struct_size;
  const char *input;
  const char *output;
  const int64_t *shape;  /* of the present value */
  heddle_device *device; /* in whose memory it lies; NULL: the host's */
  uint64_t bytes;
  heddle_dtype dtype;
  uint32_t ndim;
  uint32_t axis;     /* the open dimension along which it grows; HEDDLE_STATE_NO_AXIS: none, or more than one */
  uint32_t is_reset; /* 1: it was neither written nor computed since its reset; its shape may still change */
} heddle_state_info;

/* How many state values there are. Constant for the life of the executor; any thread. */
HEDDLE_API uint32_t heddle_executor_state_count(const heddle_executor *ex);

/* Describes the i-th state value. Set out->struct_size first. HEDDLE_ENOTFOUND if there is no such value. */
HEDDLE_API heddle_status heddle_executor_state_info(heddle_executor *ex, uint32_t i, heddle_state_info *out,
                                                    heddle_error *err);

/* The position of the state value whose input or output has the name, or -1. Any thread. */
HEDDLE_API int32_t heddle_executor_state_index(const heddle_executor *ex, const char *name);

/* Sets a state value, or all of them, to its beginning. HEDDLE_ENOTFOUND, HEDDLE_ENOMEM. */
HEDDLE_API heddle_status heddle_executor_reset_state(heddle_executor *ex, uint32_t i, heddle_error *err);

/* read: *out is a copy in host memory, with one reference. write: copies a tensor on the host or on a device to the state
 * value. dtype and shape must fit the input: HEDDLE_EINVAL. HEDDLE_EDEVICE where the device of the value is lost. Both
 * block for the copy. */
HEDDLE_API heddle_status heddle_executor_read_state(heddle_executor *ex, uint32_t i, heddle_tensor **out,
                                                    heddle_error *err);
HEDDLE_API heddle_status heddle_executor_write_state(heddle_executor *ex, uint32_t i, const heddle_tensor *value,
                                                     heddle_error *err);

/* Keeps the first `length` elements along the open dimension of a state value; with HEDDLE_STATE_ALL, of each value that
 * has one. HEDDLE_EINVAL where the value is shorter, or where no value has one open dimension; then nothing has changed. */
HEDDLE_API heddle_status heddle_executor_truncate_state(heddle_executor *ex, uint32_t i, int64_t length,
                                                        heddle_error *err);

/* save writes all state values to a file, which is whole or not there. load replaces all state values by those of a file;
 * where it fails, nothing has changed. HEDDLE_EFORMAT for a file that is no state file, or is not whole; HEDDLE_EINVAL for
 * the state of another model: other names, dtypes or shapes. HEDDLE_EIO, HEDDLE_ELIMIT (the setting limit.params_bytes),
 * HEDDLE_ENOMEM. Both block for the file and for copies. */
HEDDLE_API heddle_status heddle_executor_save_state(heddle_executor *ex, const char *path, heddle_error *err);
HEDDLE_API heddle_status heddle_executor_load_state(heddle_executor *ex, const char *path, heddle_error *err);

/* Gives the state values of an executor to another executor of the same model. Nothing is copied: both share the memory
 * until a run of either replaces its own. HEDDLE_EINVAL for an executor of another model; HEDDLE_EDEVICE where the device
 * of a value is lost. On failure `to` has not changed. Neither executor may be used by another thread meanwhile. */
HEDDLE_API heddle_status heddle_executor_fork_state(heddle_executor *from, heddle_executor *to, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
