/* executor/range.c: which programs of a model cover which shapes, and when one is planned for a bound. */
#include "executor/range.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "executor/most.h"
#include "executor/precedent.h"

enum { MOST_REFUSALS = 4 }; /* in a row: then shapes are planned each for itself */

static bool is_open(const heddle__plan_input *in) {
  return in->source == HEDDLE__SOURCE_INPUT && in->has_shape;
}

/* The same inputs with the same ranks and dtypes. */
static bool is_alike(const heddle__order *a, const heddle__order *b) {
  if (a->req.graph != b->req.graph || a->n_args != b->n_args) return false;
  for (uint32_t i = 0; i < a->n_args; i++) {
    const heddle__plan_input *x = &a->inputs[i], *y = &b->inputs[i];
    if (x->source != y->source || x->has_shape != y->has_shape) return false;
    if (!is_open(x)) continue;
    if (x->known.ndim != y->known.ndim || !heddle__dtype_equal(x->known.dtype, y->known.dtype) ||
        (x->known.data == NULL) != (y->known.data == NULL))
      return false;
  }
  return true;
}

static bool has_open_dim(const heddle__plan_input *in, uint32_t dim) {
  return (in->open_dims >> dim & 1) != 0;
}

/* A shape without elements is planned for itself: much does not happen in it. What never changed is not smaller either. */
static bool covers(const heddle__order *large, const heddle__order *small) {
  for (uint32_t i = 0; i < small->n_args; i++) {
    const heddle__plan_input *x = &large->inputs[i], *y = &small->inputs[i];
    for (uint32_t d = 0; is_open(y) && d < y->known.ndim; d++)
      if (y->known.shape[d] < 1 || x->known.shape[d] < y->known.shape[d] ||
          (x->known.shape[d] > y->known.shape[d] && !has_open_dim(x, d)))
        return false;
  }
  return true;
}

static int64_t power_of_two(int64_t n) {
  int64_t p = 1;
  while (p < n && p <= INT64_MAX / 2) p *= 2;
  return p < n ? n : p;
}

/* Raises the bounds of a wide order, which begins as an exact one, to what another order has; differs: where they are
 * not equal. */
static void raise_to(heddle__order *wide, const heddle__order *other, const heddle__order *exact, bool *differs) {
  for (uint32_t i = 0; i < wide->n_args; i++) {
    heddle__plan_input *w = &wide->inputs[i];
    for (uint32_t d = 0; is_open(w) && w->known.data == NULL && d < w->known.ndim; d++) {
      const int64_t n = other->inputs[i].known.shape[d];
      differs[(size_t)i * HEDDLE__MAX_NDIM + d] |=
          n != exact->inputs[i].known.shape[d] || has_open_dim(&other->inputs[i], d);
      if (n > w->known.shape[d]) w->known.shape[d] = n;
    }
  }
}

/* The order for the bound of what was seen; *is_wider: some dimension changed. */
static heddle_status widen(heddle_model *m, const heddle__wish *wish, const heddle__order *exact, heddle__order **out,
                           bool *is_wider, heddle_error *err) {
  bool *differs = heddle__alloc((size_t)exact->n_args * HEDDLE__MAX_NDIM, sizeof *differs);
  heddle__order *wide = NULL;
  *is_wider = false;
  heddle_status s = differs != NULL ? heddle__order_make(m, wish, &wide, err) : heddle__no_memory(err, "a request");
  if (s == HEDDLE_OK) {
    pthread_mutex_lock(&m->lock);
    for (const heddle__program *p = m->programs; p != NULL; p = p->next) {
      const heddle__program *root = p->root != NULL ? p->root : p;
      if (is_alike(root->order_of, exact)) raise_to(wide, root->order_of, exact, differs);
    }
    pthread_mutex_unlock(&m->lock);
  }
  for (uint32_t i = 0; s == HEDDLE_OK && i < exact->n_args; i++) {
    heddle__known *k = &wide->inputs[i].known;
    for (uint32_t d = 0; is_open(&wide->inputs[i]) && k->data == NULL && d < k->ndim; d++) {
      const int64_t most = heddle__most_of(m, i, d);
      if (!differs[(size_t)i * HEDDLE__MAX_NDIM + d] && most == 0) continue;
      k->shape[d] = most > 0 ? most : power_of_two(k->shape[d]);
      wide->inputs[i].open_dims |= UINT32_C(1) << d;
      *is_wider = true;
    }
  }
  if (s == HEDDLE_OK && *is_wider) {
    wide->req.open = true;
    s = heddle__order_renew(wide, wish, err);
  }
  heddle__free(differs);
  if (s != HEDDLE_OK || !*is_wider) {
    heddle__order_free(wide);
    wide = NULL;
  }
  *out = wide;
  return s;
}

/* What the cache has for an order. */
typedef struct finding {
  heddle__program *root; /* that covers it, with one more reference; NULL: none */
  bool is_known;         /* there is a program of its form */
  bool is_refused;       /* shapes under a root that covers it were planned for themselves too often */
} finding;

static finding find_root(heddle_model *m, const heddle__order *o) {
  finding f = {.root = NULL};
  pthread_mutex_lock(&m->lock);
  for (heddle__program *p = m->programs; p != NULL && f.root == NULL; p = p->next) {
    heddle__program *root = p->root != NULL ? p->root : p;
    if (!is_alike(root->order_of, o)) continue;
    f.is_known = true;
    if (!root->plan->req.open || !covers(root->order_of, o)) continue;
    if (atomic_load(&root->refusals) < MOST_REFUSALS) f.root = heddle__program_retain(root);
    else f.is_refused = true;
  }
  pthread_mutex_unlock(&m->lock);
  return f;
}

void heddle__range_refuse(heddle__program *root) {
  atomic_store(&root->refusals, MOST_REFUSALS);
}

static void say_alone(const heddle_model *m, const char *why) {
  heddle__logf(heddle__context_log(m->ctx), HEDDLE_LOG_DEBUG, "plan", "%s: planned for these shapes alone: %s",
               m->graph->source, why);
}

void heddle__range_miss(heddle__program *root, const char *why) {
  say_alone(root->model, why);
  atomic_fetch_add(&root->refusals, 1);
}

/* Takes what a new root covers out of the cache. Programs of single shapes: what is bound for the root would have to be bound
 * anew for them, and back. Smaller roots and their sizes: only executors that are bound to one go on with it. */
static void supersede(heddle_model *m, const heddle__program *root) {
  heddle__program *dropped = NULL;
  pthread_mutex_lock(&m->lock);
  for (heddle__program **link = &m->programs; *link != NULL;) {
    heddle__program *p = *link;
    const heddle__program *of = p->root != NULL ? p->root : p;
    if (of == root || !is_alike(of->order_of, root->order_of) || !covers(root->order_of, of->order_of)) {
      link = &p->next;
      continue;
    }
    *link = p->next;
    p->next = dropped;
    dropped = p;
  }
  pthread_mutex_unlock(&m->lock);
  while (dropped != NULL) {
    heddle__program *next = dropped->next;
    heddle__program_release(dropped);
    dropped = next;
  }
}

static bool is_final(heddle_status s) {
  return s == HEDDLE_ENOMEM || s == HEDDLE_ETIMEOUT || s == HEDDLE_ECANCELED || s == HEDDLE_EDEVICE;
}

/* The inputs whose bounds are not those of the shapes that made the root grow. */
static void say_grown(heddle_model *m, const heddle__order *root, const heddle__order *exact) {
  char text[400] = "", shape[128];
  size_t used = 0;
  for (uint32_t i = 0; i < exact->n_args && used < sizeof text; i++) {
    const heddle__known *k = &root->inputs[i].known;
    const size_t bytes = k->ndim * sizeof *k->shape;
    if (!is_open(&root->inputs[i]) || bytes == 0 || memcmp(k->shape, exact->inputs[i].known.shape, bytes) == 0)
      continue;
    heddle__shape_name(k->shape, k->ndim, shape, sizeof shape);
    const int n = snprintf(text + used, sizeof text - used, "%s '%.60s' %s", used > 0 ? "," : "",
                           heddle__model_arg(m, i)->name, shape);
    if (n > 0) used += (size_t)n;
  }
  heddle__logf(heddle__context_log(m->ctx), HEDDLE_LOG_INFO, "plan",
               "%s: planned for shapes up to%s%s; smaller ones are sizes of this program", m->graph->source,
               used > 0 ? text : " these", used >= sizeof text ? ", ..." : "");
}

/* A root for the bound; NULL where there can be none. */
static heddle_status grow(heddle_model *m, const heddle__wish *wish, const heddle__order *order, heddle__program **out,
                          heddle_error *err) {
  heddle__order *wide = NULL;
  heddle__program *root = NULL;
  bool is_wider = false;
  heddle_status s = widen(m, wish, order, &wide, &is_wider, err);
  if (s != HEDDLE_OK || !is_wider) return s;
  wide->req.growths++;
  s = heddle__program_make(m, wide, &root, err);
  if (s != HEDDLE_OK) {
    heddle__order_free(wide);
    return s;
  }
  atomic_fetch_add(&m->growths, 1);
  say_grown(m, root->order_of, order);
  *out = heddle__model_keep(m, root, true);
  supersede(m, *out);
  return HEDDLE_OK;
}

/* Whether some input or output lies in memory that a device has already, of the size that it has. */
static bool has_homes(const heddle__order *order) {
  bool has = false;
  for (uint32_t i = 0; i < order->n_args && !has; i++) has = order->inputs[i].home != 0;
  for (uint32_t i = 0; i < order->n_homes && !has; i++) has = order->homes[i] != 0;
  return has;
}

heddle_status heddle__range_program(heddle_model *m, const heddle__wish *wish, heddle__order *order,
                                    heddle__program **out, heddle_error *err) {
  *out = NULL;
  heddle_error why = {0};
  if (!HEDDLE_HAS_RANGES || !m->ranges || wish->exact || has_homes(order) || !heddle__precedent_usable(order) ||
      !covers(order, order))
    return HEDDLE_OK;
  const finding found = find_root(m, order);
  heddle__program *root = found.root;
  heddle_status s = HEDDLE_OK;
  const bool grows = root == NULL && (found.is_known || m->n_most > 0) && !found.is_refused &&
                     atomic_load(&m->range_failures) < MOST_REFUSALS;
  if (grows) s = grow(m, wish, order, &root, &why);
  if (s == HEDDLE_OK && root == NULL) return HEDDLE_OK;
  const bool has_root = s == HEDDLE_OK;
  if (s == HEDDLE_OK) s = heddle__program_resize(m, root, order, NULL, out, &why);
  if (s == HEDDLE_OK) {
    atomic_store(&root->refusals, 0);
    atomic_store(&m->range_failures, 0);
  } else if (!is_final(s)) {
    if (has_root) heddle__range_miss(root, why.text);
    else say_alone(m, why.text);
    if (!has_root) atomic_fetch_add(&m->range_failures, 1);
    s = HEDDLE_OK;
  } else if (err != NULL) {
    *err = why;
  }
  heddle__program_release(root);
  return s;
}
