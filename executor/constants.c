/* executor/constants.c: packs and uploads the constants of a plan, unless the model has them already.
 * Two threads may do the same work at once: the first to publish wins, the other drops its copy. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "executor/constants.h"
#include "executor/model.h"
#include "executor/weights.h"

uint64_t heddle__plan_granule(const heddle__plan *plan) {
  uint64_t most = 1;
  for (uint32_t i = 0; i < plan->n_devices; i++) {
    const heddle__plan_device *d = &plan->devices[i];
    if (d->used && d->dev->desc.import_alignment > most) most = d->dev->desc.import_alignment;
  }
  return most;
}

/* A temporary stream of one call, one a device, and what was put into it. */
typedef struct upload_stream {
  heddle_pstream *stream; /* NULL: there is none */
  uint64_t bytes;
} upload_stream;

typedef struct upload {
  const heddle__plan *plan;
  upload_stream *streams; /* per plan device */
  uint64_t granule;
  heddle_params *params;    /* the model's, or NULL */
  heddle__weights *weights; /* or NULL */
} upload;

static heddle_status stream_of(upload *u, uint32_t device, heddle_pstream **out, heddle_error *err) {
  heddle_device *dev = u->plan->devices[device].dev;
  heddle_status s = HEDDLE_OK;
  if (u->streams[device].stream == NULL)
    s = dev->t->stream.create(dev->handle, HEDDLE_STREAM_COPY, 0, &u->streams[device].stream, err);
  *out = u->streams[device].stream;
  return s;
}

/* Writes the constant in its layout to host memory. */
static heddle_status pack(const heddle__plan *plan, const heddle__instance *inst, void *dst, heddle_error *err) {
  const heddle__value *v = &plan->values[inst->value];
  heddle_device *dev = plan->devices[plan->spaces[inst->space].device].dev;
  if (v->layout == 0) {
    memcpy(dst, v->known.data, (size_t)v->known.bytes);
    return HEDDLE_OK;
  }
  heddle_pvalue tensor = {.struct_size = sizeof tensor,
                          .dtype = v->known.dtype,
                          .shape = v->known.shape,
                          .data = v->known.data,
                          .data_bytes = v->known.bytes,
                          .layout = v->layout,
                          .ndim = (int32_t)v->known.ndim};
  return dev->t->layout.pack(dev->instance, dev->index, &tensor, dst, inst->bytes, err);
}

static heddle_status fill_device(upload *u, const heddle__instance *inst, heddle__memory *m, heddle_error *err) {
  const heddle__value *v = &u->plan->values[inst->value];
  void *packed = NULL;
  const void *src = v->known.data;
  if (v->layout != 0) {
    packed = inst->bytes <= SIZE_MAX ? heddle__alloc_aligned((size_t)inst->bytes, 64) : NULL;
    if (packed == NULL) return heddle__no_memory(err, "a packed constant");
    src = packed;
  }
  const uint32_t device = u->plan->spaces[inst->space].device;
  heddle_pstream *stream = NULL;
  heddle_status s = packed != NULL ? pack(u->plan, inst, packed, err) : HEDDLE_OK;
  if (s == HEDDLE_OK) s = stream_of(u, device, &stream, err);
  u->streams[device].bytes += inst->bytes;
  if (s == HEDDLE_OK) s = m->dev->t->copy.write(stream, m->buffer, 0, src, inst->bytes, err);
  heddle__free(packed); /* write is finished with it */
  return s;
}

/* The packed bytes in the file of weights, by whom they are used from then on. */
static heddle_status fill_file(upload *u, const heddle__instance *inst, heddle__packed *p, void *at, uint64_t bytes,
                               heddle_error *err) {
  heddle_status s = u->weights->filled ? HEDDLE_OK : pack(u->plan, inst, at, err);
  if (s != HEDDLE_OK) return s;
  return heddle__memory_import(p->dev, at, bytes, inst->align, u->weights->tensor, &p->memory, err);
}

/* What the address of a constant's memory is a multiple of: kernels read packed weights of bytes at any, so that those of a mapped
 * file are used where they lie; compiled code asks for more. */
static uint64_t align_of(const heddle__plan *plan, const heddle__instance *inst) {
  const heddle__value *v = &plan->values[inst->value];
  return v->known.dtype.bits <= 8 && v->layout == 0 ? v->align : inst->align;
}

bool heddle__constant_lent(const heddle__plan *plan, const heddle__instance *inst) {
  const heddle__value *v = &plan->values[inst->value];
  const heddle_device *dev = plan->devices[plan->spaces[inst->space].device].dev;
  uint32_t element = v->known.dtype.bits >= 16 ? v->known.dtype.bits / 8u : 1u;
  return heddle__device_inline(dev) && v->layout == 0 && v->known.bytes == inst->bytes &&
         (uintptr_t)v->known.data % element == 0 &&
         heddle__memory_importable(dev, v->known.data, inst->bytes, align_of(plan, inst));
}

static heddle_status fill(upload *u, uint32_t alloc, const heddle__instance *inst, heddle__packed *p,
                          heddle_error *err) {
  const heddle__value *v = &u->plan->values[inst->value];
  heddle_status s;
  if (heddle__constant_lent(u->plan, inst)) {
    s = heddle__memory_import(p->dev, (void *)v->known.data, inst->bytes, p->align, NULL, &p->memory, err);
    if (s != HEDDLE_EUNSUPPORTED) return s;
  }
  uint64_t bytes = 0;
  void *at = u->weights != NULL ? heddle__weights_at(u->weights, alloc, &bytes) : NULL;
  if (at != NULL) {
    s = fill_file(u, inst, p, at, bytes, err);
  } else {
    s = p->image.width > 0
            ? heddle__memory_create_image(p->dev, &p->image, &p->memory, err)
            : heddle__memory_create(p->dev, p->kind, inst->bytes, inst->align, u->granule, &p->memory, err);
    if (s != HEDDLE_OK || inst->bytes == 0) return s;
    if (p->memory->host == NULL) {
      s = fill_device(u, inst, p->memory, err);
    } else {
      s = pack(u->plan, inst, p->memory->host, err);
      if (s == HEDDLE_OK) s = heddle__memory_flush(p->memory, 0, inst->bytes, err);
    }
  }
  if (s == HEDDLE_OK && u->params != NULL && u->params->forget != NULL)
    u->params->forget(u->params->maps, v->known.data, v->known.bytes);
  return s;
}

static void destroy(heddle__packed *p) {
  if (p == NULL) return;
  heddle__memory_release(p->memory);
  heddle__free(p);
}

/* What the model has for an instance; its lock is held. */
static heddle__packed *find_packed(heddle_model *m, const heddle__packed *like) {
  for (heddle__packed *p = m->packed; p != NULL; p = p->next)
    if (p->arg == like->arg && p->dev == like->dev && p->kind == like->kind && p->layout == like->layout &&
        heddle__image_same(&p->image, &like->image) && p->align >= like->align)
      return p;
  return NULL;
}

/* An upload is one piece of work for a watchdog, of which the length is known. */
static uint64_t watchdog_of(const heddle_device *dev, uint64_t bytes) {
  const uint64_t ns_per_byte = 10;
  if (dev->watchdog_ns == 0 || bytes > (UINT64_MAX - dev->watchdog_ns) / ns_per_byte) return UINT64_MAX;
  return dev->watchdog_ns + bytes * ns_per_byte;
}

static heddle_status sync_stream(upload *u, uint32_t device, uint64_t left_ns, heddle_error *err) {
  heddle_device *dev = u->plan->devices[device].dev;
  const uint64_t most_ns = watchdog_of(dev, u->streams[device].bytes);
  bool quiet; /* where not, idle has failed, and the plugin keeps what it needs */
  heddle_status s =
      heddle__device_settle(dev, u->streams[device].stream, left_ns < most_ns ? left_ns : most_ns, &quiet, err);
  dev->t->stream.close(u->streams[device].stream);
  u->streams[device].stream = NULL;
  if (s == HEDDLE_ETIMEOUT && most_ns < left_ns) {
    s = heddle__fail(err, HEDDLE_EDEVICE,
                     "%s: upload of constants has not ended after %llu ms, over its watchdog_ms of %llu", dev->name,
                     (unsigned long long)(most_ns / 1000000), (unsigned long long)(dev->watchdog_ns / 1000000));
    heddle__device_fault(dev, 0, err != NULL ? err->text : NULL);
    return heddle__at_device(s, err, dev->name);
  }
  if (s == HEDDLE_ETIMEOUT)
    return heddle__prefix_on(
        dev->name, err, s,
        "%s: upload of constants did not end in its time (upload_timeout_ns of the model's options, "
        "limit.upload_seconds): ",
        dev->name);
  return s == HEDDLE_OK ? s : heddle__prefix_on(dev->name, err, s, "%s: upload of constants: ", dev->name);
}

/* Waits for all streams; all together have the given time. Gives the first failure. */
static heddle_status sync_all(upload *u, uint64_t timeout_ns, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  uint64_t start = heddle__now_ns();
  for (uint32_t i = 0; i < u->plan->n_devices; i++) {
    if (u->streams[i].stream == NULL) continue;
    uint64_t passed = heddle__now_ns() - start;
    heddle_error why = {0};
    heddle_status one = sync_stream(u, i, passed < timeout_ns ? timeout_ns - passed : 0, &why);
    if (one == HEDDLE_OK || s != HEDDLE_OK) continue;
    s = one;
    if (err != NULL) *err = why;
  }
  return s;
}

heddle_status heddle__constants_acquire(heddle_model *m, const heddle__plan *plan, heddle__packed **out,
                                        heddle_error *err) {
  upload u = {plan, heddle__alloc(plan->n_devices, sizeof *u.streams), heddle__plan_granule(plan), m->params, NULL};
  if (u.streams == NULL) return heddle__no_memory(err, "uploads");
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&m->lock);
  bool is_first = m->packed == NULL; /* later programs find most of what they want in the model */
  bool is_whole = true;              /* everything has been written to the file, if there is one */
  pthread_mutex_unlock(&m->lock);
  if (is_first) u.weights = heddle__weights_open(m, plan);
  for (uint32_t i = 0; i < plan->n_allocs && s == HEDDLE_OK; i++) {
    if (plan->allocs[i].kind != HEDDLE__ALLOC_CONSTANT) continue;
    const heddle__instance *inst = &plan->instances[plan->allocs[i].instance];
    const heddle__space *space = &plan->spaces[inst->space];
    const heddle__value *v = &plan->values[inst->value];
    const bool is_lent = heddle__constant_lent(plan, inst);
    heddle__packed wanted = {.arg = inst->io,
                             .dev = plan->devices[space->device].dev,
                             .kind = space->kind,
                             .layout = v->layout,
                             .align = is_lent ? align_of(plan, inst) : inst->align,
                             .image = space->image};
    pthread_mutex_lock(&m->lock);
    heddle__packed *p = find_packed(m, &wanted);
    if (p != NULL) p->users++;
    pthread_mutex_unlock(&m->lock);
    if (p != NULL) is_whole = false; /* another thread's, so it lies elsewhere */
    if (p == NULL) {
      p = heddle__alloc(1, sizeof *p); /* users 0: not yet the model's */
      if (p == NULL) {
        s = heddle__no_memory(err, "a constant");
        break;
      }
      *p = wanted;
      heddle_error why = {0};
      s = fill(&u, i, inst, p, &why);
      if (s != HEDDLE_OK) {
        if (s == HEDDLE_EDEVICE) heddle__device_fault(p->dev, why.api_code, why.text);
        if (err != NULL) *err = why;
        s = heddle__prefix_on(p->dev->name, err, s, "constant '%s' on %s: ", v->name, p->dev->name);
      }
    }
    out[i] = p;
  }
  heddle_status done = sync_all(&u, m->upload_timeout_ns, s == HEDDLE_OK ? err : NULL);
  if (s == HEDDLE_OK) s = done;
  heddle__free(u.streams);
  if (u.weights != NULL) heddle__weights_close(u.weights, s == HEDDLE_OK && is_whole);
  if (s != HEDDLE_OK) return s;

  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    heddle__packed *mine = out[i], *theirs = NULL;
    if (mine == NULL) continue;
    pthread_mutex_lock(&m->lock);
    if (mine->users == 0) {
      theirs = find_packed(m, mine);
      if (theirs != NULL) {
        theirs->users++;
      } else {
        mine->users = 1;
        mine->next = m->packed;
        m->packed = mine;
      }
    }
    pthread_mutex_unlock(&m->lock);
    if (theirs != NULL) {
      destroy(mine);
      out[i] = theirs;
    }
  }
  return HEDDLE_OK;
}

/* Whether a constant that no program uses stays packed: the next shapes may want that layout again. Where memory has a
 * limit it counts for programs only, and nothing is kept on a device that failed. */
static bool may_idle(const heddle_model *m, const heddle__packed *p) {
  return m->limits == NULL && !m->is_small && heddle__device_check(p->dev, NULL) == HEDDLE_OK;
}

bool heddle__constants_forget(heddle_model *m) {
  heddle__packed *idle = NULL;
  pthread_mutex_lock(&m->lock);
  for (heddle__packed **link = &m->packed; *link != NULL;) {
    heddle__packed *p = *link;
    if (p->users > 0) {
      link = &p->next;
      continue;
    }
    *link = p->next;
    p->next = idle;
    idle = p;
  }
  pthread_mutex_unlock(&m->lock);
  const bool any = idle != NULL;
  while (idle != NULL) {
    heddle__packed *next = idle->next;
    destroy(idle);
    idle = next;
  }
  return any;
}

void heddle__constants_recycle(heddle_model *m, heddle__packed **taken, uint32_t n) {
  for (uint32_t i = 0; taken != NULL && i < n; i++) {
    heddle__packed *p = taken[i];
    taken[i] = NULL;
    if (p == NULL) continue;
    pthread_mutex_lock(&m->lock);
    const bool idles = p->users == 1 && may_idle(m, p);
    const bool last = p->users <= 1 && !idles;
    if (p->users == 1 && !idles)
      for (heddle__packed **link = &m->packed; *link != NULL; link = &(*link)->next)
        if (*link == p) {
          *link = p->next;
          break;
        }
    if (p->users > 0) p->users--;
    pthread_mutex_unlock(&m->lock);
    if (last) destroy(p);
  }
}
