/* modules/call_device.c: which devices a library's functions run on, and calls of them by name on a device: each call has
 * a stream of the library's for itself, since a function may call others there. */
#include "modules/call_device.h"

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"

typedef struct call_stream {
  struct call_stream *next;
  heddle_pstream *stream;
} call_stream;

typedef struct heddle__call_device {
  struct heddle__call_device *next;
  heddle__tvm_caller caller;
  call_stream *idle; /* that no call uses; guarded by the module's lock */
} call_device;

heddle_status heddle__library_fits(const heddle_module *m, const char *function, int32_t annotated,
                                   const heddle_device *dev, heddle_error *err) {
  int32_t type = HEDDLE_DEVICE_CPU;
  const char *kind = NULL;
  heddle_status s = m->t->find(m->library, function, &type, &kind, err);
  if (s != HEDDLE_OK) return s;
  if (kind == NULL && annotated != 0) type = annotated;
  if (kind != NULL && type != dev->desc.type)
    return heddle__fail_on(
        dev->name, err, HEDDLE_EUNSUPPORTED,
        "function '%.200s' launches code of kind '%s' (DLPack's type %d), which devices of plugin '%s' "
        "run: add one to the list; %s is of type %d",
        function, kind, (int)type, m->t->plugin(kind), dev->name, (int)dev->desc.type);
  if (!heddle__is_type(dev->desc.type, type))
    return heddle__fail_on(dev->name, err, HEDDLE_EUNSUPPORTED,
                           "function '%.200s' was compiled for devices of DLPack's type %d, and %s is of type %d",
                           function, (int)type, dev->name, (int)dev->desc.type);
  bool on_cpu = type == HEDDLE_DEVICE_CPU && heddle__device_inline(dev) && dev->t->memory.native != NULL;
  if (on_cpu || (dev->t->has_module && !heddle__device_inline(dev) && m->t->serves(m->library, type))) return HEDDLE_OK;
  return heddle__fail_on(
      dev->name, err, HEDDLE_EUNSUPPORTED,
      "function '%.200s' is requested on %s, and there is no code for such devices in its library, or "
      "the device's plugin loads none of it",
      function, dev->name);
}

static heddle_status make(heddle_module *m, heddle_device *dev, call_device **out, heddle_error *err) {
  heddle_status s = heddle__device_open(dev, err);
  if (s != HEDDLE_OK) return s;
  call_device *d = heddle__alloc(1, sizeof *d);
  s = d != NULL ? HEDDLE_OK : heddle__no_memory(err, "a library on a device");
  if (s == HEDDLE_OK) {
    d->caller = (heddle__tvm_caller){.library = m->library, .pool = heddle__context_pool(m->ctx), .dev = dev};
    s = m->t->attach(&d->caller, err);
  }
  if (s == HEDDLE_OK) {
    *out = d;
    return s;
  }
  heddle__free(d);
  heddle__device_close(dev);
  return s;
}

static heddle_status make_stream(heddle_device *dev, call_stream **out, heddle_error *err) {
  call_stream *c = heddle__alloc(1, sizeof *c);
  heddle_status s = c != NULL ? HEDDLE_OK : heddle__no_memory(err, "a library on a device");
  if (s == HEDDLE_OK) s = dev->t->stream.create(dev->handle, HEDDLE_STREAM_COMPUTE, 0, &c->stream, err);
  if (s == HEDDLE_OK) *out = c;
  else heddle__free(c);
  return s;
}

heddle_status heddle__call_on_device(heddle_module *m, heddle_device *dev, const char *function,
                                     const heddle_value *args, uint32_t n_args, heddle_value *result,
                                     heddle_error *err) {
  if (dev->ctx != m->ctx)
    return heddle__fail_on(dev->name, err, HEDDLE_EINVAL, "a tensor is on %s of another context than the library's",
                           dev->name);
  heddle_status s = heddle__device_check(dev, err);
  if (s == HEDDLE_OK) s = heddle__library_fits(m, function, dev->desc.type, dev, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&m->lock);
  call_device *d = m->devices;
  while (d != NULL && d->caller.dev != dev) d = d->next;
  if (d == NULL && (s = make(m, dev, &d, err)) == HEDDLE_OK) {
    d->next = m->devices;
    m->devices = d;
  }
  call_stream *c = s == HEDDLE_OK ? d->idle : NULL;
  if (c != NULL) d->idle = c->next;
  pthread_mutex_unlock(&m->lock);
  if (s == HEDDLE_OK && c == NULL) s = make_stream(dev, &c, err);
  if (s != HEDDLE_OK) return s;
  heddle_error why = {0};
  s = m->t->call(&d->caller, c->stream, function, args, n_args, result, &why);
  pthread_mutex_lock(&m->lock);
  c->next = d->idle;
  d->idle = c;
  pthread_mutex_unlock(&m->lock);
  if (s == HEDDLE_EDEVICE) heddle__device_fault(dev, why.api_code, why.text);
  if (s != HEDDLE_OK && err != NULL) *err = why;
  return s;
}

void heddle__call_devices_close(heddle_module *m) {
  while (m->devices != NULL) {
    call_device *d = m->devices;
    m->devices = d->next;
    heddle_device *dev = d->caller.dev;
    while (d->idle != NULL) {
      call_stream *c = d->idle;
      d->idle = c->next;
      dev->t->stream.close(c->stream);
      heddle__free(c);
    }
    m->t->detach(&d->caller);
    heddle__free(d);
    heddle__device_close(dev);
  }
}
