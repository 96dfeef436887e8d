/* executor/prepared.c: see prepared.h. What was prepared may be code: it is taken from a file that only root and this user
 * can change, as plugins are, from a file that was verified, or from the program's own memory. */
#define _GNU_SOURCE /* realpath */
#include "executor/prepared.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/prepared.h"
#include "core/registry.h"

#if HEDDLE_HAS_PACKAGES

struct heddle__carriage {
  heddle__shelf shelf;
  const heddle_model *model;
  heddle__prepared *prepared;
  bool usable[]; /* of each target */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the files' states: models share params */

static void say(const heddle_model *m, int32_t level, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(const heddle_model *m, int32_t level, const char *format, ...) {
  char line[900];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  heddle__logf(&m->ctx->log, level, "prepared", "%s: what was prepared %s", m->params->source, line);
}

/* ---- whether it fits */

static heddle_status check_file(const heddle_context *ctx, const heddle_params *params, heddle_error *why) {
  const heddle__carried *c = params->carried;
  struct stat at;
  if (c->in_memory || c->is_verified || ctx == NULL) return HEDDLE_OK;
  char *real = realpath(params->source, NULL);
  bool good = real != NULL && stat(real, &at) == 0 &&
              (c->is_copy || ((uint64_t)at.st_dev == c->device && (uint64_t)at.st_ino == c->inode));
  heddle_status s = good ? heddle__trust(ctx, real, why) : heddle__fail(why, HEDDLE_EIO, "the file is no longer there");
  free(real);
  return s;
}

heddle_status heddle__prepared_check(const heddle_context *ctx, const heddle_params *params, heddle_error *why) {
  const heddle__prepared *p = params->carried->prepared;
  if (p->why != NULL) return heddle__fail(why, HEDDLE_EFORMAT, "%s", p->why);
  if (strcmp(p->version, HEDDLE_VERSION) != 0)
    return heddle__fail(why, HEDDLE_EUNSUPPORTED, "it is of Heddle %.40s, and this is %s", p->version, HEDDLE_VERSION);
  return check_file(ctx, params, why);
}

static const heddle_device *device_of(const heddle_model *m, const char *name) {
  for (uint32_t i = 0; i < m->n_devices; i++)
    if (strcmp(m->devices[i]->name, name) == 0) return m->devices[i];
  return NULL;
}

const char *heddle__prepared_differs(const heddle__prepared_device *was, const heddle_device *dev, const char **before,
                                     const char **now) {
  const char *build = dev->plugin->root.build != NULL ? dev->plugin->root.build : "";
  *before = was->about;
  *now = dev->desc.name;
  if (strcmp(*before, *now) != 0) return "device";
  *before = was->driver;
  *now = dev->desc.driver;
  if (strcmp(*before, *now) != 0) return "driver";
  *before = was->build;
  *now = build;
  return strcmp(*before, *now) != 0 ? "plugin" : NULL;
}

static bool fits(const heddle_model *m, const heddle__prepared_target *t) {
  uint32_t known = 0;
  for (uint32_t i = 0; i < t->n_devices; i++) {
    const heddle__prepared_device *was = &t->devices[i];
    const heddle_device *dev = device_of(m, was->name);
    if (dev == NULL) continue;
    const char *before, *now, *what = heddle__prepared_differs(was, dev, &before, &now);
    if (what != NULL) {
      say(m, HEDDLE_LOG_WARN, "for %.80s is ignored: the %s of %s was '%.160s', and is '%.160s'", t->list, what,
          was->name, before, now);
      return false;
    }
    known++;
  }
  if (known == 0) say(m, HEDDLE_LOG_INFO, "for %.80s is ignored: the model runs on other devices", t->list);
  return known > 0;
}

/* Whether any of it can be used. */
static bool choose(heddle_model *m, heddle__prepared *p, bool *usable) {
  heddle_error why;
  bool any = false;
  const char *value, *from;
  if (heddle__config_get(m->ctx->config, "prepared", &value, &from) && heddle__config_is_off(value)) return false;
  if (heddle__prepared_check(m->ctx, m->params, &why) != HEDDLE_OK) {
    say(m, HEDDLE_LOG_WARN, "is ignored: %s", why.text);
    return false;
  }
  for (uint32_t i = 0; i < p->n_targets; i++) any |= usable[i] = fits(m, &p->targets[i]);
  return any;
}

/* ---- finding */

static bool find_file(void *user, const char *name, const void **data, uint64_t *bytes, char note[HEDDLE__SHELF_NOTE]) {
  struct heddle__carriage *c = user;
  heddle__prepared_file *found = NULL;
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < c->prepared->n_files && found == NULL; i++) {
    heddle__prepared_file *f = &c->prepared->files[i];
    if (!c->usable[f->target] || strcmp(f->name, name) != 0) continue;
    if (f->state == HEDDLE__UNCHECKED) {
      heddle__digest is = {{0, 0}};
      heddle__digest_add(&is, f->data, f->bytes);
      f->state = heddle__digest_same(&is, &f->digest) ? HEDDLE__GOOD : HEDDLE__DAMAGED;
      if (f->state == HEDDLE__DAMAGED)
        snprintf(note, HEDDLE__SHELF_NOTE,
                 "%.160s: what was prepared is ignored in part: the bytes of %.160s are damaged",
                 c->model->params->source, f->name);
    }
    if (f->state == HEDDLE__GOOD) found = f;
  }
  pthread_mutex_unlock(&lock);
  if (found == NULL) return false;
  *data = found->data;
  *bytes = found->bytes;
  return true;
}

bool heddle__prepared_find(heddle_model *m, const char *name, const void **data, uint64_t *bytes) {
  char note[HEDDLE__SHELF_NOTE] = "";
  bool found = m->carriage != NULL && find_file(m->carriage, name, data, bytes, note);
  if (note[0] != '\0') heddle__logf(&m->ctx->log, HEDDLE_LOG_WARN, "prepared", "%s", note);
  return found;
}

heddle_status heddle__prepared_open(heddle_model *m, heddle_error *err) {
  if (m->params == NULL || m->params->carried == NULL || m->params->carried->prepared == NULL) return HEDDLE_OK;
  heddle__prepared *p = m->params->carried->prepared;
  struct heddle__carriage *c = heddle__alloc(1, sizeof *c + p->n_targets * sizeof c->usable[0]);
  if (c == NULL) return heddle__no_memory(err, "what a package has prepared");
  if (!choose(m, p, c->usable)) {
    heddle__free(c);
    return HEDDLE_OK;
  }
  c->shelf = (heddle__shelf){.ctx = m->ctx, .find = find_file, .user = c};
  c->model = m;
  c->prepared = p;
  m->carriage = c;
  heddle__shelf_add(&c->shelf);
  return HEDDLE_OK;
}

void heddle__prepared_close(heddle_model *m) {
  struct heddle__carriage *c = m->carriage;
  if (c == NULL) return;
  heddle__shelf_remove(&c->shelf);
  heddle__free(c);
  m->carriage = NULL;
}

#else

heddle_status heddle__prepared_open(heddle_model *m, heddle_error *err) {
  (void)m, (void)err; /* it is of no package, and so in what follows */
  return HEDDLE_OK;
}

void heddle__prepared_close(heddle_model *m) {
  (void)m;
}

bool heddle__prepared_find(heddle_model *m, const char *name, const void **data, uint64_t *bytes) {
  (void)m, (void)name, (void)data, (void)bytes;
  return false;
}

#endif
