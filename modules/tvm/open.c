/* modules/tvm/open.c: what is open in this process: one library per file and one system library per prefix. A library is
 * set up and ended with no lock held, since loaders of the application are called; threads that want it wait. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/library.h"
#include "modules/tvm/syslib.h"

/* Guards all, and of each library in it users, next, state and owner; files are opened and closed under it, so that one
 * that is being closed is not found again half unmapped. Nothing of the application's is called under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* a state */
static heddle__tvm_library *all;

/* Enters a library with one user, as what this thread works on. Locked. */
static void enter(heddle__tvm_library *l) {
  l->users = 1;
  l->is_busy = true;
  l->owner = pthread_self();
  l->next = all;
  all = l;
}

static void free_library(heddle__tvm_library *l) {
  if (l != NULL) heddle__free(l->path);
  if (l != NULL) heddle__free(l->use);
  heddle__free(l);
}

/* Ends a library that is not in use. Locked, but not while it works. */
static void end(heddle__tvm_library *l) {
  l->is_busy = true;
  l->owner = pthread_self();
  pthread_mutex_unlock(&lock);
  heddle__library_clear(l);
  pthread_mutex_lock(&lock);
  heddle__tvm_library **link = &all;
  while (*link != l) link = &(*link)->next;
  *link = l->next;
  if (l->handle != NULL && !l->is_shut) dlclose(l->handle);
  free_library(l);
  pthread_cond_broadcast(&changed);
}

/* Whether a library that is not in use stays: its code keeps handles of kernels in its own memory, and others in this
 * process have the file open too, so that memory is what the next user of the file gets. Where modules of the
 * application's are to be ended before their bytes go, this cannot be found out. Locked. */
static bool stays(heddle__tvm_library *l) {
  if (!l->is_whole || l->handle == NULL || l->n_kernels == 0) return false;
  for (uint32_t i = 0; i < l->blob.n_modules; i++)
    if (l->blob.modules[i].loaded != NULL) return false;
  (void)dlclose(l->handle);
  void *again = dlopen(l->use, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  l->is_shut = again != l->handle;
  if (again != NULL && l->is_shut) dlclose(again);
  return !l->is_shut;
}

/* Sets a library up that this thread has entered; one that cannot be is ended. Locked, but not while it works. */
static heddle_status begin(heddle__tvm_library *l, heddle_error *err) {
  pthread_mutex_unlock(&lock);
  heddle_status s = heddle__library_set_up(l, err);
  pthread_mutex_lock(&lock);
  l->is_busy = false;
  if (s != HEDDLE_OK) end(l);
  pthread_cond_broadcast(&changed);
  return s;
}

/* Waits until the state of some library has changed. Locked. */
static heddle_status await(const heddle__tvm_library *l, heddle_error *err) {
  if (pthread_equal(l->owner, pthread_self()))
    return heddle__fail(err, HEDDLE_EBUSY, "a loader of one of its modules opens it again");
  pthread_cond_wait(&changed, &lock);
  return HEDDLE_OK;
}

/* ---- files */

static heddle__tvm_library *make(const char *path, const char *name, void *handle, heddle_error *err) {
  heddle__tvm_library *l = heddle__alloc(1, sizeof *l);
  if (l != NULL) l->path = heddle__strndup(name, strlen(name));
  if (l != NULL) l->use = heddle__strndup(path, strlen(path));
  heddle_status s =
      l != NULL && l->path != NULL && l->use != NULL ? HEDDLE_OK : heddle__no_memory(err, "a compiled library");
  if (s == HEDDLE_OK && !heddle__image_of(handle, &l->image))
    s = heddle__fail(err, HEDDLE_EFORMAT, "it has no dynamic symbols that can be listed");
  if (s == HEDDLE_OK) {
    l->handle = handle;
    l->symbols = heddle__image_symbols(&l->image);
    return l;
  }
  dlclose(handle);
  free_library(l);
  return NULL;
}

heddle_status heddle__library_open(const char *path, const char *name, heddle__tvm_library **out, heddle_error *err) {
  heddle_error why = {0};
  heddle__tvm_library *l;
  heddle_status s;
  *out = NULL;
  pthread_mutex_lock(&lock);
  for (;;) {
    void *handle = NULL;
    s = heddle__library_map(path, &handle, &why);
    if (s != HEDDLE_OK) break;
    for (l = all; l != NULL && l->handle != handle;) l = l->next; /* no system library: their handles are NULL */
    if (l == NULL) {
      l = make(path, name, handle, &why);
      s = l != NULL ? HEDDLE_OK : why.status;
      if (l == NULL) break;
      enter(l);
      s = begin(l, &why);
      break;
    }
    dlclose(handle); /* the library's own stays */
    if (!l->is_busy) {
      l->users++;
      break;
    }
    s = await(l, &why);
    if (s != HEDDLE_OK) break;
  }
  pthread_mutex_unlock(&lock);
  if (s == HEDDLE_OK) *out = l;
  else if (err != NULL) *err = why;
  return s;
}

bool heddle__library_is_open(const void *pointer) {
  pthread_mutex_lock(&lock);
  const heddle__tvm_library *l = all;
  while (l != NULL && l != pointer) l = l->next;
  pthread_mutex_unlock(&lock);
  return l != NULL;
}

void heddle__library_close(heddle__tvm_library *l) {
  if (l == NULL) return;
  pthread_mutex_lock(&lock);
  if (--l->users == 0 && !stays(l)) end(l);
  pthread_mutex_unlock(&lock);
}

/* ---- the system library */

static heddle__tvm_library *make_system(const char *prefix, heddle_error *err) {
  size_t n = strlen(prefix);
  heddle__tvm_library *l = heddle__alloc(1, sizeof *l);
  char *own = heddle__alloc(2 * n + 40, 1); /* two texts: the path, and behind it the prefix */
  if (l == NULL || own == NULL) {
    heddle__free(l);
    heddle__free(own);
    heddle__no_memory(err, "the system library");
    return NULL;
  }
  int used = sprintf(own, n > 0 ? "system library '%s'" : "system library%s", prefix) + 1;
  l->path = own;
  l->symbols = heddle__system_symbols(strcpy(own + used, prefix));
  l->changes = heddle__system_changes();
  return l;
}

/* One that is not in use follows what was registered since. Where it carries modules, code may hold handles of theirs,
 * and only its list of functions is made anew. Locked, but not while it works. */
static heddle_status refresh(heddle__tvm_library *l, heddle_error *err) {
  uint64_t now = heddle__system_changes();
  if (l->users > 1 || l->changes == now) return HEDDLE_OK;
  l->is_busy = true;
  l->owner = pthread_self();
  pthread_mutex_unlock(&lock);
  heddle_status s;
  if (l->is_whole && l->blob.n_modules > 0) {
    s = heddle__library_list(l, err);
  } else {
    heddle__library_clear(l);
    l->tensors = (heddle__tensors){.n_buckets = 0};
    l->blob = (heddle__blob){.n_modules = 0};
    l->functions = NULL;
    l->imports = l->order = NULL;
    l->kernels = NULL;
    l->n_functions = l->n_imports = l->n_kernels = 0;
    s = heddle__library_set_up(l, err);
  }
  pthread_mutex_lock(&lock);
  l->changes = s == HEDDLE_OK ? now : UINT64_MAX; /* which is never now: the next one tries again */
  l->is_busy = false;
  pthread_cond_broadcast(&changed);
  return s;
}

/* Locked. */
static heddle__tvm_library *find_system(const char *prefix) {
  heddle__tvm_library *l = all;
  while (l != NULL && (l->handle != NULL || strcmp(l->symbols.prefix, prefix) != 0)) l = l->next;
  return l;
}

heddle_status heddle__library_system(const char *prefix, heddle__tvm_library **out, heddle_error *err) {
  heddle_error why = {0};
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&lock);
  heddle__tvm_library *l = find_system(prefix);
  while (l != NULL && l->is_busy && s == HEDDLE_OK) {
    s = await(l, &why);
    l = find_system(prefix);
  }
  if (s == HEDDLE_OK && l != NULL) {
    s = refresh(l, &why);
  } else if (s == HEDDLE_OK) {
    l = make_system(prefix, &why);
    if (l != NULL) enter(l); /* its one user is the process */
    s = l != NULL ? begin(l, &why) : HEDDLE_ENOMEM;
  }
  if (s == HEDDLE_OK) l->users++;
  pthread_mutex_unlock(&lock);
  *out = s == HEDDLE_OK ? l : NULL;
  if (s != HEDDLE_OK && err != NULL) *err = why;
  return s;
}
