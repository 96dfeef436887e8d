/* modules/tvm/library_object.c: an open library as a module: its functions by name, and beside it the models that it
 * carries, as its blob says who imports whom. */
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/convert.h"
#include "modules/tvm/library.h"
#include "modules/tvm/object.h"

typedef struct library_object {
  heddle_object head;
  heddle_module *m;
  struct library_object *next; /* in the list of those that live */
} library_object;

/* What compiled code was given of what its module imports: it keeps such handles, so they stay. */
typedef struct given {
  struct given *next;
  heddle_function *f;
} given;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards both lists; a leaf */
static library_object *all;
static given *pinned;

static int find_of_library(heddle_object *self, const char *name, heddle_function **out);

static void finish(heddle_object *self) {
  library_object *o = (library_object *)(void *)self, **link = &all;
  pthread_mutex_lock(&lock);
  while (*link != o) link = &(*link)->next;
  *link = o->next;
  pthread_mutex_unlock(&lock);
  heddle_module_release(o->m);
}

static const heddle__object_type library_type = {.kind = "library", .find = find_of_library, .finish = finish};

/* ---- functions */

typedef struct library_function {
  heddle_object *library;
  char name[];
} library_function;

static void finish_function(void *self) {
  library_function *f = self;
  heddle__object_release(f->library);
  heddle__free(f);
}

static int call(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                int32_t *ret_code) {
  library_function *f = self;
  return heddle__values_call(((library_object *)(void *)f->library)->m, f->name, args, codes, n, ret, ret_code);
}

static int find_of_library(heddle_object *self, const char *name, heddle_function **out) {
  const library_object *o = (library_object *)(void *)self;
  if (heddle__library_code(o->m->library, name) == NULL) return 0;
  size_t n = strlen(name) + 1;
  library_function *f = heddle__alloc(1, sizeof *f + n);
  heddle_function *made = f != NULL ? heddle__function_new(name, call, f, finish_function) : NULL;
  if (f == NULL || made == NULL) {
    heddle__free(f);
    heddle__tvm_say(NULL, "out of memory: a function of a library");
    return -1;
  }
  memcpy(f->name, name, n);
  f->library = heddle__object_retain(self);
  *out = made;
  return 0;
}

/* ---- modules */

heddle_object *heddle__library_object(heddle_module *m) {
  library_object *o = (library_object *)(void *)heddle__object_new(&library_type, sizeof *o);
  if (o == NULL) {
    heddle__tvm_say(NULL, "out of memory: a library as a module");
    return NULL;
  }
  o->m = heddle_module_retain(m);
  pthread_mutex_lock(&lock);
  o->next = all;
  all = o;
  pthread_mutex_unlock(&lock);
  return heddle__library_tree(&o->head, m);
}

/* The first module of a library behind after (NULL: of all) that imports others, with a reference. One that ends at this
 * moment is passed over. */
static heddle_object *importer(const heddle__tvm_library *l, const heddle_object *after) {
  heddle_object *found = NULL;
  pthread_mutex_lock(&lock);
  library_object *o = after != NULL ? ((const library_object *)(const void *)after)->next : all;
  for (; o != NULL && found == NULL; o = o->next) {
    unsigned n = atomic_load_explicit(&o->head.references, memory_order_relaxed);
    if (o->m->library != l || o->head.n_imports == 0) continue;
    while (n > 0 && !atomic_compare_exchange_weak(&o->head.references, &n, n + 1)) continue;
    if (n > 0) found = &o->head;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static bool pin(heddle_function *f) {
  given *g = heddle__alloc(1, sizeof *g);
  if (g == NULL) return false;
  pthread_mutex_lock(&lock);
  *g = (given){pinned, f};
  pinned = g;
  pthread_mutex_unlock(&lock);
  return true;
}

int heddle__library_imported(const heddle__tvm_library *l, const char *name, heddle_function **out) {
  heddle_object *o = importer(l, NULL);
  int rc = 0;
  *out = NULL;
  while (o != NULL) {
    for (uint32_t i = 0; i < o->n_imports && rc == 0 && *out == NULL; i++)
      rc = heddle__object_find(o->imports[i], name, true, out);
    heddle_object *next = rc == 0 && *out == NULL ? importer(l, o) : NULL;
    heddle__object_release(o);
    o = next;
  }
  if (*out == NULL || pin(*out)) return rc;
  heddle__function_release(*out);
  *out = NULL;
  heddle__tvm_say(NULL, "out of memory: a function of a module that is imported");
  return -1;
}

heddle_module *heddle__object_library(heddle_object *o) {
  if (o == NULL) return NULL;
  if (o->type == &library_type) return ((library_object *)(void *)o)->m;
  for (uint32_t i = 0; i < o->n_imports; i++) {
    heddle_module *m = heddle__object_library(o->imports[i]);
    if (m != NULL) return m;
  }
  return NULL;
}
