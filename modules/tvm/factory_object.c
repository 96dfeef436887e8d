/* modules/tvm/factory_object.c: a model inside of a library as a module: called by its name with devices it gives an
 * executor. Graph and parameters are read when they are first needed, and shared by the executors. */
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/executor_object.h"
#include "modules/tvm/library.h"

typedef struct factory {
  heddle_object head;
  heddle_module *m;
  char *name;
  bool bare; /* of remove_params */
  bool has_lock;
  pthread_mutex_t lock; /* guards the rest while it is read */
  heddle_graph *graph;
  heddle_params *params;
} factory;

static void finish(heddle_object *self) {
  factory *f = (factory *)(void *)self;
  heddle_graph_release(f->graph);
  heddle_params_release(f->params);
  if (f->has_lock) pthread_mutex_destroy(&f->lock);
  heddle__free(f->name);
  heddle_module_release(f->m);
}

static int find_of_factory(heddle_object *self, const char *name, heddle_function **out);

static const heddle__object_type factory_type = {
    .kind = "GraphExecutorFactory", .find = find_of_factory, .finish = finish};

static heddle_object *make(heddle_module *m, const char *name, bool bare) {
  factory *f = (factory *)(void *)heddle__object_new(&factory_type, sizeof *f);
  if (f != NULL) {
    f->m = heddle_module_retain(m);
    f->bare = bare;
    f->name = heddle__strndup(name, strlen(name));
    f->has_lock = pthread_mutex_init(&f->lock, NULL) == 0;
    if (f->name != NULL && f->has_lock) return &f->head;
    heddle__object_release(&f->head);
  }
  heddle__refuse(NULL, "out of memory: a model as a module");
  return NULL;
}

heddle_object *heddle__factory_object(heddle_module *m, const char *model_name) {
  return make(m, model_name, false);
}

static bool read(factory *f, const char *method) {
  heddle_error err = {0};
  pthread_mutex_lock(&f->lock);
  heddle_status s = f->graph == NULL ? heddle_model_unpack(f->m, f->name, &f->graph, &f->params, &err) : HEDDLE_OK;
  pthread_mutex_unlock(&f->lock);
  if (s != HEDDLE_OK) heddle__refuse_error(method, &err);
  return s == HEDDLE_OK;
}

/* An executor on the devices from position i on. */
static int create(factory *f, const heddle__args *a, int32_t i, bool debug, heddle__word *ret, int32_t *ret_code) {
  uint32_t n = 0;
  int32_t(*devices)[2] = heddle__alloc((size_t)a->n + 1, sizeof *devices);
  heddle_object *made = NULL;
  if (devices == NULL) return heddle__refuse(a->method, "out of memory");
  if (heddle__args_devices(a, i, devices, &n) && read(f, a->method))
    made = heddle__executor_make(f->graph, f->m, (const int32_t(*)[2])devices, n, f->bare ? NULL : f->params, debug);
  heddle__free(devices);
  return heddle__give_object(made, ret, ret_code);
}

static HEDDLE__METHOD(create_default) {
  factory *f = self;
  heddle__args a = {f->name, args, codes, n};
  return create(f, &a, 0, false, ret, ret_code);
}

static HEDDLE__METHOD(debug_create) {
  factory *f = self;
  heddle__args a = {"debug_create", args, codes, n};
  const char *name = NULL;
  if (!heddle__args_name(&a, 0, &name)) return -1;
  if (strcmp(name, f->name) != 0)
    return heddle__refuse(a.method, "the model here is '%.100s', not '%.100s'", f->name, name);
  return create(f, &a, 1, true, ret, ret_code);
}

/* As it is in the library, byte for byte. */
static HEDDLE__METHOD(get_graph_json) {
  factory *f = self;
  heddle__args a = {"get_graph_json", args, codes, n};
  const char *graph = NULL;
  void *params = NULL;
  size_t bytes = 0, params_bytes = 0;
  heddle_error err = {0};
  if (!heddle__args_count(&a, 0, 0)) return -1;
  if (heddle__library_model(f->m->library, f->name, &graph, &bytes, &params, &params_bytes, &err) != HEDDLE_OK)
    return heddle__refuse_error(a.method, &err);
  heddle__free(params);
  return heddle__give_text(graph, bytes, ret, ret_code);
}

static HEDDLE__METHOD(get_graph_params) {
  factory *f = self;
  heddle__args a = {"get_graph_params", args, codes, n};
  heddle_params *none = NULL;
  void *blob = NULL;
  size_t bytes = 0;
  heddle_error err = {0};
  if (!heddle__args_count(&a, 0, 0) || !read(f, a.method)) return -1;
  heddle_status s = f->bare ? heddle_params_create(NULL, NULL, 0, &none, &err) : HEDDLE_OK;
  if (s == HEDDLE_OK) s = heddle_params_bytes(f->bare ? none : f->params, &blob, &bytes, &err);
  int rc = s == HEDDLE_OK ? heddle__give_bytes(blob, bytes, ret, ret_code) : heddle__refuse_error(a.method, &err);
  heddle_free(blob);
  heddle_params_release(none);
  return rc;
}

static HEDDLE__METHOD(remove_params) {
  factory *f = self;
  heddle__args a = {"remove_params", args, codes, n};
  if (!heddle__args_count(&a, 0, 0)) return -1;
  heddle_object *bare = make(f->m, f->name, true);
  for (uint32_t i = 0; i < f->head.n_imports && bare != NULL; i++) {
    if (heddle__object_import(bare, f->head.imports[i])) continue;
    heddle__object_release(bare);
    return heddle__refuse(a.method, "out of memory");
  }
  return heddle__give_object(bare, ret, ret_code);
}

static int find_of_factory(heddle_object *self, const char *name, heddle_function **out) {
  const heddle__method methods[] = {{((factory *)(void *)self)->name, create_default},
                                    {"get_graph_json", get_graph_json},
                                    {"get_graph_params", get_graph_params},
                                    {"debug_create", debug_create},
                                    {"remove_params", remove_params},
                                    {"cuda_graph_create", create_default}}; /* it replays what a plugin records */
  return heddle__method_find(methods, sizeof methods / sizeof methods[0], self, name, out);
}
