/* executor/budget/suggest.c: looks for nodes that, moved to another device, make a plan fit: those first that hold most
 * at the peak, a few more each time, each time planned. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/alloc.h"
#include "executor/budget/net.h"

enum { MOST_MOVED = 32, MOST_PLANS = 12 };

typedef struct moves {
  heddle__rule *rules; /* the request's and after them one per node that is moved */
  uint32_t n, own;     /* own: of the request */
} moves;

/* '*', '?', '[' and '\' of a name mean something else in a pattern. */
static char *pattern_of(const char *name) {
  char *text = heddle__alloc(strlen(name) * 2 + 1, 1), *to = text;
  for (; text != NULL && *name != '\0'; name++) {
    if (strchr("*?[\\", *name) != NULL) *to++ = '\\';
    *to++ = *name;
  }
  return text;
}

static bool is_moved(const moves *m, const char *pattern) {
  for (uint32_t i = m->own; i < m->n; i++)
    if (strcmp(m->rules[i].pattern, pattern) == 0) return true;
  return false;
}

/* Adds the nodes of a region; false where there is no room for all, or no memory. */
static bool move_region(moves *m, const heddle__plan *plan, const heddle__region *r, uint32_t to) {
  if (m->n - m->own + r->n_nodes > MOST_MOVED) return false;
  for (uint32_t k = 0; k < r->n_nodes; k++) {
    char *pattern = pattern_of(plan->req.graph->nodes[r->nodes[k]].name);
    if (pattern == NULL || is_moved(m, pattern)) {
      heddle__free(pattern);
      return pattern != NULL;
    }
    m->rules[m->n++] = (heddle__rule){.pattern = pattern, .text = "moved for memory", .device = to};
  }
  return true;
}

static void move_back(moves *m) {
  while (m->n > m->own) heddle__free((char *)(uintptr_t)m->rules[--m->n].pattern);
}

/* Bytes at the peak that the step of a region reads or writes. */
static uint64_t weight_of(const heddle__plan *plan, const budget_peak *peak, const heddle__step *s) {
  uint64_t sum = 0;
  for (uint32_t k = 0; k < s->n_accesses; k++)
    if (peak->live[s->accesses[k].instance]) sum += plan->instances[s->accesses[k].instance].bytes;
  return sum;
}

static uint32_t fullest(const heddle__plan *plan) {
  uint32_t best = 0;
  for (uint32_t d = 1; d < plan->n_devices; d++)
    if (budget_excess(plan, d) > budget_excess(plan, best)) best = d;
  return best;
}

/* Moves the heaviest region that is on the fullest device of a plan, and as many more as count says. False where there is
 * nothing to move. */
static bool move_heaviest(moves *m, const heddle__plan *plan, uint32_t to, uint32_t count, heddle_status *status,
                          heddle_error *err) {
  budget_peak peak;
  uint32_t device = fullest(plan), moved = 0;
  uint64_t most = UINT64_MAX; /* weights fall from region to region, and steps rise among equals */
  uint32_t after = 0;
  if (device == to) return false;
  *status = budget_peak_init(&peak, plan, device, err);
  if (*status != HEDDLE_OK) return false;
  while (moved < count) {
    uint32_t best = HEDDLE__NONE;
    uint64_t best_weight = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
      const heddle__step *s = &plan->steps[i];
      if (s->kind != HEDDLE__STEP_OP || s->device != device || plan->regions[s->region].n_nodes == 0) continue;
      uint64_t weight = weight_of(plan, &peak, s);
      bool is_next = weight < most || (weight == most && i > after);
      if (!is_next || weight <= best_weight) continue;
      best = i;
      best_weight = weight;
    }
    if (best == HEDDLE__NONE || !move_region(m, plan, &plan->regions[plan->steps[best].region], to)) break;
    most = best_weight;
    after = best;
    moved++;
  }
  heddle__free(peak.live);
  return moved > 0;
}

/* Whether a plan with these rules fits; *out is the plan, NULL where there is none. */
static bool fits(const heddle__request *request, const moves *m, heddle__plan **out) {
  heddle__request req = *request;
  heddle_error why;
  uint64_t over = 0;
  req.rules = m->rules;
  req.n_rules = m->n;
  return budget_fit(&req, false, out, &over, &why) == HEDDLE_OK && over == 0;
}

/* Takes back, one by one, what fits without. */
static void spare(const heddle__request *request, moves *m, uint32_t *plans) {
  for (uint32_t i = m->n; m->n > m->own + 1 && i-- > m->own && (*plans)++ < 2 * MOST_PLANS;) {
    heddle__plan *made = NULL;
    heddle__rule out = m->rules[i];
    memmove(&m->rules[i], &m->rules[i + 1], (m->n - i - 1) * sizeof *m->rules);
    m->n--;
    if (fits(request, m, &made)) {
      heddle__free((char *)(uintptr_t)out.pattern);
    } else {
      memmove(&m->rules[i + 1], &m->rules[i], (m->n - i) * sizeof *m->rules);
      m->rules[i] = out;
      m->n++;
    }
    heddle__plan_free(made);
  }
}

/* " --place 'a=cpu'" for each node; false where there is no room. */
static bool say(const moves *m, const heddle__request *request, char *words, size_t size) {
  size_t used = 0;
  for (uint32_t i = m->own; i < m->n; i++) {
    int n = snprintf(words + used, size - used, "%s--place '%s=%s'", i == m->own ? "" : " ", m->rules[i].pattern,
                     request->devices[m->rules[i].device]->name);
    if (n < 0 || (size_t)n >= size - used) {
      words[0] = '\0';
      return false;
    }
    used += (size_t)n;
  }
  return true;
}

/* Moves nodes to one device until the plan fits. */
static bool try_device(const heddle__request *request, const heddle__plan *over, uint32_t to, moves *m, uint32_t *plans,
                       heddle_status *status, heddle_error *err) {
  heddle__plan *made = NULL;
  bool found = false;
  for (uint32_t count = 1; !found && (*plans)++ < MOST_PLANS; count *= 2) {
    if (!move_heaviest(m, made != NULL ? made : over, to, count, status, err)) break;
    heddle__plan *next = NULL;
    found = fits(request, m, &next);
    if (next == NULL) break; /* the device does not run them */
    heddle__plan_free(made);
    made = next;
  }
  heddle__plan_free(made);
  return found;
}

/* Whether it fits with all nodes on one device. */
static bool try_all(const heddle__request *request, uint32_t to, moves *m) {
  heddle__plan *made = NULL;
  m->rules[m->n++] = (heddle__rule){.pattern = "*", .text = "moved for memory", .device = to};
  bool found = fits(request, m, &made);
  m->n--;
  heddle__plan_free(made);
  return found;
}

heddle_status budget_suggest(const heddle__request *request, const heddle__plan *over, char *words, size_t size,
                             heddle_error *err) {
  moves m = {.n = request->n_rules, .own = request->n_rules};
  uint32_t plans = 0, enough = 0, where = 0; /* a number of nodes and a device, where their names have no room */
  heddle_status s = HEDDLE_OK;
  words[0] = '\0';
  m.rules = heddle__alloc((size_t)m.own + MOST_MOVED, sizeof *m.rules);
  if (m.rules == NULL) return heddle__no_memory(err, "rules that would make a plan fit");
  if (m.own > 0) memcpy(m.rules, request->rules, m.own * sizeof *m.rules);
  for (uint32_t d = 0; s == HEDDLE_OK && d < request->n_devices && words[0] == '\0'; d++) {
    plans = 0;
    if (d != fullest(over) && try_device(request, over, d, &m, &plans, &s, err)) {
      spare(request, &m, &plans);
      if (!say(&m, request, words, size)) {
        enough = m.n - m.own;
        where = d;
      }
    }
    move_back(&m);
  }
  for (uint32_t d = 0; s == HEDDLE_OK && d < request->n_devices && words[0] == '\0'; d++)
    if (d != fullest(over) && try_all(request, d, &m))
      snprintf(words, size, "--place '*=%s'", request->devices[d]->name);
  if (s == HEDDLE_OK && words[0] == '\0' && enough > 0)
    snprintf(words, size, "%u nodes on %s, too many to name here", (unsigned)enough, request->devices[where]->name);
  heddle__free(m.rules);
  return s;
}
