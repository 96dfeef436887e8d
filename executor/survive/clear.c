/* executor/survive/clear.c: takes things away: what an executor is bound to, programs that are not in use, and a lost
 * device from a model, so that it can be opened anew. */
#include <string.h>

#include "executor/chain.h"
#include "executor/survive/survive.h"

void survive_detach(scene *c) {
  heddle_executor *ex = c->ex;
  pthread_mutex_lock(&ex->drive.lock); /* a run may be pending, and others may ask for shapes */
  heddle__bound *b = ex->bound;
  ex->bound = NULL;
  pthread_mutex_unlock(&ex->drive.lock);
  ex->stale = true;
  heddle__profile_release(ex->profile);
  ex->profile = NULL;
  heddle__chain_renew(ex);
  if (b == NULL) return;
  if (c->quiet) heddle__bound_free(b, true);
  else heddle__model_keep_orphan(ex->active, b);
}

void survive_forget(heddle_model *m) {
  pthread_mutex_lock(&m->lock);
  heddle__program *all = m->programs;
  m->programs = NULL;
  pthread_mutex_unlock(&m->lock);
  while (all != NULL) { /* out of the cache, one of a single reference is not in use */
    heddle__program *p = all;
    all = p->next;
    if (atomic_load(&p->references) == 1) {
      heddle__program_release(p);
      continue;
    }
    pthread_mutex_lock(&m->lock);
    p->next = m->programs;
    m->programs = p;
    pthread_mutex_unlock(&m->lock);
  }
  heddle__constants_forget(m);
}

/* Inputs whose value is a slot of what was bound get a copy, since the slot may be memory of a lost device. */
static heddle_status copy_values(scene *c) {
  heddle_executor *ex = c->ex;
  for (uint32_t i = 0; i < ex->n_args; i++) {
    heddle_tensor *t = ex->args[i].value, *copy = NULL;
    if (t == NULL || ex->args[i].lent || t->dev != NULL) continue;
    heddle_status s = heddle_tensor_create(NULL, t->dtype, t->shape, t->ndim, &copy, c->words);
    if (s == HEDDLE_OK) s = heddle_tensor_copy(copy, t, c->words);
    if (s != HEDDLE_OK) {
      heddle_tensor_release(copy);
      return s;
    }
    pthread_mutex_lock(&ex->drive.lock);
    ex->args[i].value = copy;
    pthread_mutex_unlock(&ex->drive.lock);
    heddle_tensor_release(t);
  }
  return HEDDLE_OK;
}

/* The model's own opening of a device. */
static void close_own(heddle_model *m, heddle_device *dev) {
  bool open = false;
  pthread_mutex_lock(&m->lock);
  for (uint32_t i = 0; i < m->n_opened && !open; i++) {
    if (m->opened[i] != dev) continue;
    m->opened[i] = m->opened[--m->n_opened];
    open = true;
  }
  pthread_mutex_unlock(&m->lock);
  if (open) heddle__device_close(dev);
}

bool survive_reopen(scene *c) {
  heddle_model *m = c->ex->active;
  for (uint32_t i = 0; i < m->n_devices; i++) {
    const char *bound = survive_lost(m->devices[i]) ? survive_lies_on(c, m->devices[i]) : NULL;
    if (bound != NULL) return survive_no(c, "'%.100s' is bound to memory of %s", bound, m->devices[i]->name);
  }
  if (atomic_load(&m->users) != 1)
    return survive_no(c, "%s cannot be opened anew while others use the model", c->culprit->name);
  if (copy_values(c) != HEDDLE_OK) return survive_no(c, "the inputs could not be kept: %.300s", c->words->text);
  survive_detach(c);
  survive_forget(m);
  if (m->programs != NULL || m->orphans != NULL)
    return survive_no(c, "%s cannot be opened anew while others use the model", c->culprit->name);
  for (uint32_t i = 0; i < m->n_devices; i++) {
    heddle_device *dev = m->devices[i];
    heddle_error why = {0};
    if (!survive_lost(dev)) continue;
    close_own(m, dev);
    if (heddle_device_reopen(dev, &why) != HEDDLE_OK) return survive_no(c, "%.350s", why.text);
  }
  return true;
}
