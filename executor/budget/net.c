/* executor/budget/net.c: makes the net of a finished plan: copies are left out, and what a task waits for through them is
 * what it waits for. */
#include "executor/budget/net.h"

#include "core/alloc.h"
#include "core/error.h"

static bool add(budget_net *net, budget_list *list, uint32_t number) {
  if (net->n_lists == net->cap_lists) {
    uint32_t cap = net->cap_lists * 2 + 64;
    uint32_t *more = heddle__grow(net->lists, net->cap_lists, cap, sizeof *more);
    if (more == NULL) return false;
    net->lists = more;
    net->cap_lists = cap;
  }
  if (list->count++ == 0) list->first = net->n_lists;
  net->lists[net->n_lists++] = number;
  return true;
}

/* Scratch: numbers of the plan's steps and instances in the net, HEDDLE__NONE where they are not in it. */
typedef struct maker {
  budget_net *net;
  const heddle__plan *plan;
  uint32_t *task_of, *value_of, *slot_of; /* per step, instance, device */
  uint32_t *seen;                         /* per step: the task that came by last, plus 1 */
  uint32_t *stack;
} maker;

/* The operators that a step waits for, through copies; one after another in the net's lists. */
static bool find_before(maker *m, uint32_t step, budget_task *task) {
  uint32_t n = 0, mark = m->task_of[step] + 1;
  m->stack[n++] = step;
  while (n > 0) {
    const heddle__step *s = &m->plan->steps[m->stack[--n]];
    for (uint32_t k = 0; k < s->n_deps; k++) {
      uint32_t d = s->deps[k];
      if (m->seen[d] == mark) continue;
      m->seen[d] = mark;
      if (m->task_of[d] == HEDDLE__NONE) m->stack[n++] = d;
      else if (!add(m->net, &task->before, m->task_of[d])) return false;
    }
  }
  return true;
}

static bool take_operands(maker *m, uint32_t step, budget_task *task) {
  const heddle__step *s = &m->plan->steps[step];
  for (int writes = 0; writes < 2; writes++)
    for (uint32_t k = 0; k < s->n_accesses; k++) {
      const heddle__access *a = &s->accesses[k];
      uint32_t v = m->value_of[a->instance];
      if ((a->kind == HEDDLE__ACCESS_WRITE) != (writes == 1) || v == HEDDLE__NONE) continue;
      if (writes == 1) m->net->values[v].maker = m->task_of[step];
      if (!add(m->net, writes == 1 ? &task->writes : &task->reads, v)) return false;
    }
  if (s->workspace != HEDDLE__NONE && task->slot != HEDDLE__NONE)
    task->workspace = m->plan->instances[s->workspace].bytes;
  const heddle__region *r = &m->plan->regions[s->region];
  const heddle__offer *offer = &r->offers[r->offer];
  for (uint64_t k = 0; k < offer->n_in_place; k++) {
    int32_t i = offer->in_place[2 * k], o = offer->in_place[2 * k + 1];
    if (i < 0 || o < 0 || (uint32_t)i >= r->n_inputs || (uint32_t)o >= r->n_outputs) continue;
    if (s->in[i] == HEDDLE__NONE || s->out[o] == HEDDLE__NONE) continue;
    uint32_t in = m->value_of[s->in[i]], out = m->value_of[s->out[o]];
    if (in == HEDDLE__NONE || out == HEDDLE__NONE || m->net->values[in].bytes != m->net->values[out].bytes) continue;
    if (!add(m->net, &task->heirs, in) || !add(m->net, &task->heirs, out)) return false;
  }
  return true;
}

/* The other direction of before (after) and of reads (uses). */
static bool turn_round(budget_net *net) {
  uint32_t more = 0;
  for (uint32_t t = 0; t < net->n_tasks; t++) more += net->tasks[t].before.count + net->tasks[t].reads.count;
  uint32_t *lists = heddle__grow(net->lists, net->cap_lists, (size_t)net->n_lists + more + 1, sizeof *lists);
  if (lists == NULL) return false;
  net->lists = lists;
  net->cap_lists = net->n_lists + more + 1;
  for (int fill = 0; fill < 2; fill++) {
    for (uint32_t t = 0; t < net->n_tasks; t++) {
      const budget_task *task = &net->tasks[t];
      for (uint32_t k = 0; k < task->before.count + task->reads.count; k++) {
        bool before = k < task->before.count;
        uint32_t at = before ? task->before.first + k : task->reads.first + k - task->before.count;
        budget_list *list = before ? &net->tasks[net->lists[at]].after : &net->values[net->lists[at]].uses;
        if (fill == 1) net->lists[list->first + list->count] = t;
        list->count++;
      }
    }
    if (fill == 1) break;
    for (uint32_t i = 0; i < net->n_tasks + net->n_values; i++) {
      budget_list *list = i < net->n_tasks ? &net->tasks[i].after : &net->values[i - net->n_tasks].uses;
      list->first = net->n_lists;
      net->n_lists += list->count;
      list->count = 0;
    }
  }
  return true;
}

static void find_slots(maker *m) {
  budget_net *net = m->net;
  const heddle__plan *plan = m->plan;
  for (uint32_t d = 0; d < plan->n_devices; d++) {
    m->slot_of[d] = HEDDLE__NONE;
    if (plan->req.limits[d] == 0) continue;
    uint64_t fixed = heddle__plan_counted(plan, d), limit = plan->req.limits[d];
    for (uint32_t i = 0; i < plan->n_allocs; i++) {
      const heddle__allocation *a = &plan->allocs[i];
      const heddle__space *space = &plan->spaces[a->space];
      bool moves = a->kind == HEDDLE__ALLOC_ARENA || a->kind == HEDDLE__ALLOC_SLOT;
      uint64_t bytes = a->bytes * plan->req.in_flight;
      if (moves && space->device == d && space->kind != HEDDLE_MEMORY_PINNED) fixed -= bytes < fixed ? bytes : fixed;
    }
    m->slot_of[d] = net->n_slots;
    net->device[net->n_slots] = d;
    net->room[net->n_slots++] = limit > fixed ? (limit - fixed) / plan->req.in_flight : 0;
  }
}

static void find_values(maker *m) {
  const heddle__plan *plan = m->plan;
  for (uint32_t i = 0; i < plan->n_instances; i++) {
    const heddle__instance *it = &plan->instances[i];
    uint32_t device = plan->spaces[it->space].device;
    uint64_t align = plan->spaces[it->space].align > 0 ? plan->spaces[it->space].align : 1;
    m->value_of[i] = HEDDLE__NONE;
    if (it->role != HEDDLE__ROLE_TEMP || m->slot_of[device] == HEDDLE__NONE || !budget_counts(plan, it, device))
      continue;
    m->value_of[i] = m->net->n_values;
    m->net->values[m->net->n_values++] = (budget_value){
        .bytes = (it->bytes + align - 1) / align * align, .slot = m->slot_of[device], .maker = HEDDLE__NONE};
  }
}

static bool find_tasks(maker *m) {
  budget_net *net = m->net;
  for (uint32_t s = 0; s < m->plan->n_steps; s++) {
    const heddle__step *step = &m->plan->steps[s];
    m->task_of[s] = HEDDLE__NONE;
    if (step->kind != HEDDLE__STEP_OP) continue;
    m->task_of[s] = net->n_tasks;
    budget_task *task = &net->tasks[net->n_tasks++];
    task->region = step->region;
    task->slot = m->slot_of[step->device];
    if (!find_before(m, s, task) || !take_operands(m, s, task)) return false;
  }
  return turn_round(net);
}

heddle_status budget_net_init(budget_net *net, const heddle__plan *plan, heddle_error *err) {
  *net = (budget_net){0};
  maker m = {.net = net, .plan = plan};
  size_t steps = (size_t)plan->n_steps + 1;
  net->tasks = heddle__alloc(steps, sizeof *net->tasks);
  net->values = heddle__alloc((size_t)plan->n_instances + 1, sizeof *net->values);
  net->device = heddle__alloc((size_t)plan->n_devices + 1, sizeof *net->device);
  net->room = heddle__alloc((size_t)plan->n_devices + 1, sizeof *net->room);
  uint32_t *scratch = heddle__alloc(steps * 3 + plan->n_instances + plan->n_devices, sizeof *scratch);
  bool done = net->tasks != NULL && net->values != NULL && net->device != NULL && net->room != NULL && scratch != NULL;
  if (done) {
    m.task_of = scratch;
    m.seen = scratch + steps;
    m.stack = scratch + 2 * steps;
    m.value_of = scratch + 3 * steps;
    m.slot_of = m.value_of + plan->n_instances;
    find_slots(&m);
    find_values(&m);
    done = find_tasks(&m);
  }
  heddle__free(scratch);
  return done ? HEDDLE_OK : heddle__no_memory(err, "the search for a smaller plan");
}

void budget_net_finish(budget_net *net) {
  heddle__free(net->tasks);
  heddle__free(net->values);
  heddle__free(net->lists);
  heddle__free(net->device);
  heddle__free(net->room);
}
