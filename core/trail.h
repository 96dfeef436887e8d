/* core/trail.h: order between work in streams of different owners, kept by events and without waits on the host.
 * A trail belongs to an executor, or to a stream of a caller's: it has an event for each stream that the owner submits to,
 * recorded behind the work of the present run. A tensor on a device has uses: the trails of those that read or wrote it
 * last. Who uses the tensor next makes its streams wait for these events. core/trail/ has the functions. */
#ifndef HEDDLE_CORE_TRAIL_H
#define HEDDLE_CORE_TRAIL_H

#include "core/device.h"
#include "core/parts.h"

typedef struct heddle__trail heddle__trail;
typedef struct heddle__uses heddle__uses;

#if HEDDLE_HAS_STREAMS

/* What a trail needs: counted, any thread. release takes NULL. */
heddle_status heddle__trail_make(heddle__trail **out, heddle_error *err);
heddle__trail *heddle__trail_retain(heddle__trail *trail);
void heddle__trail_release(heddle__trail *trail);

/* The owner's, one thread at a time. open: a run begins, of which nothing is submitted yet. reserve: mark `at` is an event of
 * dev, which is open; it is made where there is none, and the device stays open for it. mark: records it in a stream of
 * dev. submitted: all of the run is behind the marks. end: nothing of the run is on a device any more; status is its
 * result. */
void heddle__trail_open(heddle__trail *trail);
heddle_status heddle__trail_reserve(heddle__trail *trail, uint32_t at, heddle_device *dev, heddle_error *err);
heddle_status heddle__trail_mark(heddle__trail *trail, uint32_t at, heddle_pstream *stream, heddle_error *err);
void heddle__trail_submitted(heddle__trail *trail);
void heddle__trail_end(heddle__trail *trail, heddle_status status);

/* Makes a stream of dev wait for the marks of the present run that reach it. */
heddle_status heddle__trail_wait(heddle__trail *trail, heddle_device *dev, heddle_pstream *stream, heddle_error *err);

/* What a tensor on a device has; counted, since tensors may share memory. */
heddle_status heddle__uses_make(heddle__uses **out, heddle_error *err);
heddle__uses *heddle__uses_retain(heddle__uses *uses);
void heddle__uses_release(heddle__uses *uses); /* takes NULL */

/* Notes that the present run of a trail reads or writes the memory. Allocates for the first run only. */
heddle_status heddle__uses_note(heddle__uses *uses, heddle__trail *trail, bool writes, heddle_error *err);

/* The trail of a caller's stream among them, open for a new run and noted as one that writes; made where there is none. *out
 * has one reference. */
heddle_status heddle__uses_caller(heddle__uses *uses, uint64_t handle, heddle__trail **out, heddle_error *err);

/* Whether a use by another owner than `own` (NULL: none) can follow on the device: HEDDLE_EBUSY while a run is not wholly
 * submitted, HEDDLE_EFAILED where the run that was to write the memory failed. Two that read are in no order. */
heddle_status heddle__uses_check(heddle__uses *uses, const heddle__trail *own, bool writes, heddle_error *err);

/* Makes a stream of dev wait for what others than `own` have submitted. */
heddle_status heddle__uses_wait(heddle__uses *uses, const heddle__trail *own, bool writes, heddle_device *dev,
                                heddle_pstream *stream, heddle_error *err);

/* The host has written all of the memory: runs that failed to do so do not matter any more. */
void heddle__uses_written(heddle__uses *uses);

/* caller.c: a stream over one of the caller's on an open device; and a wait for it on the host, which ends too where this
 * thread's watch says so. */
heddle_status heddle__caller_adopt(heddle_device *dev, uint64_t handle, heddle_pstream **out, heddle_error *err);
heddle_status heddle__caller_sync(heddle_device *dev, heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err);

#else

static inline heddle_status heddle__uses_make(heddle__uses **out, heddle_error *err) {
  (void)err;
  *out = NULL;
  return HEDDLE_OK;
}
static inline heddle__uses *heddle__uses_retain(heddle__uses *uses) {
  return uses;
}
static inline void heddle__uses_release(heddle__uses *uses) {
  (void)uses;
}
static inline heddle_status heddle__uses_wait(heddle__uses *uses, const heddle__trail *own, bool writes,
                                              heddle_device *dev, heddle_pstream *stream, heddle_error *err) {
  (void)uses, (void)own, (void)writes, (void)dev, (void)stream, (void)err;
  return HEDDLE_OK;
}
static inline void heddle__uses_written(heddle__uses *uses) {
  (void)uses;
}

#endif
#endif
