/* executor/copies.h: what the parts of the copies pass share: spaces, instances and steps while they are collected. */
#ifndef HEDDLE_EXECUTOR_COPIES_H
#define HEDDLE_EXECUTOR_COPIES_H

#include "executor/plan.h"

/* An instance of a value: a list per value, oldest first. An instance is written once in a run. */
typedef struct heddle__holder {
  struct heddle__holder *next;
  uint32_t instance;
  uint32_t writer; /* step, or HEDDLE__NONE: there before the run, and visible to all */
  uint32_t sync;   /* the RELEASE or ACQUIRE that makes it visible to the other side; HEDDLE__NONE: not yet */
  bool host_wrote;
} heddle__holder;

typedef struct heddle__copier {
  heddle__plan *plan;
  uint32_t (*space_of)[3][2];    /* per device, kind and who writes; HEDDLE__NONE until used */
  heddle__holder **holders;      /* per value (of same_as) */
  bool *needed;                  /* per value: it is read */
  bool *consumer;                /* per value and device: an operator there reads it */
  const heddle__image **read_as; /* likewise: as which image, or as plain bytes; of several ways the first one */
  uint32_t *as_output;           /* per value: the output that its own bytes become; HEDDLE__NONE: none, or taken */
  uint32_t *as_resident;         /* likewise, of outputs that have a home */
  uint32_t *home_of;     /* per value of an input: the device in whose memory it lies; HEDDLE__NONE: the host's slot */
  uint32_t *output_home; /* per output, likewise */
  uint64_t host_align;   /* what inline devices want of memory that they compute in */
  uint32_t cap_spaces, cap_instances, cap_steps, cap_crossings;
} heddle__copier;

/* spaces.c: which space, by device and kind; made on first use. Memory that is not coherent is written by one side only,
 * since a write of one side over bytes that the other wrote would need a RELEASE or an ACQUIRE between: what the host
 * writes there has a space of its own. */
heddle_status heddle__space_get(heddle__copier *c, uint32_t device, uint32_t kind, bool host_writes, uint32_t *out,
                                heddle_error *err);
/* The space of a value that is read or written on the device as an image; plain memory where that has no width. */
heddle_status heddle__space_form(heddle__copier *c, uint32_t device, const heddle__image *image, bool host_writes,
                                 uint32_t *out, heddle_error *err);
/* As which image operators of the device have a value; of inline devices as none. */
const heddle__image *heddle__value_form(const heddle__plan *plan, uint32_t value, uint32_t device);
/* Can operators of the device compute in the space? */
bool heddle__space_usable(const heddle__plan *plan, uint32_t space, uint32_t device);
/* Can the space be the host side of the device's copies? */
bool heddle__space_host_side(const heddle__plan *plan, uint32_t space, uint32_t device);
/* Does the device have memory that it and the plan's host both compute in? */
bool heddle__is_unified(const heddle__plan *plan, uint32_t device);
/* The device in whose UNIFIED memory a value should lie, which writer (or the host, for NONE and inline devices) computes:
 * the one whose page most of its readers can use; HEDDLE__NONE: no reader would gain by one. */
uint32_t heddle__page_owner(const heddle__copier *c, uint32_t value, uint32_t writer);
/* The first inline device, or HEDDLE__NONE. */
uint32_t heddle__host_device(const heddle__plan *plan);
/* Where the host side of a value should be, given who reads it: where the first device that is not inline can get at
 * it, else the memory of `home` (an inline device, or HEDDLE__NONE). */
heddle_status heddle__host_space(heddle__copier *c, uint32_t value, uint32_t home, uint32_t *out, heddle_error *err);

/* homes.c: which inputs and outputs lie in memory of a device that stays there between runs; before anything is placed. */
heddle_status heddle__choose_homes(heddle__copier *c, heddle_error *err);
/* After all steps are there: operators that could update a state value in place wait for those before them that read it. */
heddle_status heddle__order_updates(heddle__copier *c, heddle_error *err);

/* steps.c: new instances, holders and steps. Pointers to steps and instances are valid until the next one is added. */
heddle_status heddle__add_instance(heddle__copier *c, uint32_t value, uint32_t space, heddle__role role, uint32_t io,
                                   uint32_t *out, heddle_error *err);
heddle_status heddle__add_holder(heddle__copier *c, uint32_t value, uint32_t instance, uint32_t writer, bool host_wrote,
                                 heddle__holder **out, heddle_error *err);
heddle_status heddle__add_step(heddle__copier *c, const heddle__step *step, const heddle__access *accesses,
                               uint32_t n_accesses, const uint32_t *deps, uint32_t n_deps, uint32_t *out,
                               heddle_error *err);
/* The step after which a side (the host, or devices) may read the instance: a RELEASE or ACQUIRE is added where it
 * needs one. HEDDLE__NONE: at once. */
heddle_status heddle__ready(heddle__copier *c, heddle__holder *h, bool for_host, uint32_t *step, heddle_error *err);
heddle_status heddle__add_copy(heddle__copier *c, heddle__step_kind kind, uint32_t device, heddle__holder *src,
                               uint32_t dst, heddle__holder **out, heddle_error *err);

/* routes.c: makes the value (of same_as) usable where it is wanted; copies once per value and device. */
heddle_status heddle__reach_device(heddle__copier *c, uint32_t value, uint32_t device, const heddle__image *image,
                                   heddle__holder **out, heddle_error *err);
/* The instance that operators of the device can use as it is; NULL where there is none yet. */
heddle__holder *heddle__find_usable(const heddle__copier *c, uint32_t value, uint32_t device,
                                    const heddle__image *image);
/* One in memory of the device itself, in whatever form; NULL: none. */
heddle__holder *heddle__find_on(const heddle__copier *c, uint32_t value, uint32_t device);
heddle_status heddle__reach_host(heddle__copier *c, uint32_t value, heddle__holder **out, heddle_error *err);
/* to: a device, or HEDDLE__NONE for the host. src: where it lies for the route, or is copied from. */
heddle_status heddle__add_crossing(heddle__copier *c, uint32_t value, uint32_t to, heddle__route route,
                                   const heddle__holder *src, heddle_error *err);

#endif
