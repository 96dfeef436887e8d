/* batch/ports.c: which dimension of each input and output is the batch dimension, which ones are padded and cut. */
#include <string.h>

#include "batch/batcher.h"
#include "core/alloc.h"
#include "core/error.h"

#define UNKNOWN UINT32_MAX
enum { UNDECIDED = -2 };

static const heddle_batch_port *asked(const heddle_batch_port *ports, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(ports[i].name, name) == 0) return &ports[i];
  return NULL;
}

/* The number of a dimension's name + 1; 0: no memory. */
static uint32_t symbol_of(heddle__batch_ports *p, const char *name) {
  for (uint32_t i = 0; i < p->n_symbols; i++)
    if (strcmp(p->symbols[i], name) == 0) return i + 1;
  char **more = heddle__grow(p->symbols, p->n_symbols, p->n_symbols + 1, sizeof *more);
  if (more == NULL) return 0;
  p->symbols = more;
  more[p->n_symbols] = heddle__strdup(name);
  return more[p->n_symbols] != NULL ? ++p->n_symbols : 0;
}

/* Name and declaration of a port; v may be NULL. */
static heddle_status describe(heddle__batch_ports *p, heddle__batch_port *port, uint32_t index, const char *name,
                              const heddle_value_info *v, heddle_error *err) {
  port->name = heddle__strdup(name);
  if (port->name == NULL) return heddle__no_memory(err, "a batcher's port");
  port->index = index;
  port->ndim = v != NULL ? v->ndim : UNKNOWN;
  port->pad_multiple = 1;
  if (v != NULL) port->dtype = v->dtype;
  if (port->ndim == UNKNOWN) return HEDDLE_OK;
  if (port->ndim > HEDDLE__BATCH_DIMS)
    return heddle__fail(err, HEDDLE_ELIMIT, "'%s' has %u dimensions", name, (unsigned)port->ndim);
  for (uint32_t d = 0; d < port->ndim; d++) {
    port->shape[d] = v->shape[d];
    if (v->shape[d] >= 0 || v->symbols == NULL || v->symbols[d] == NULL) continue;
    port->symbols[d] = symbol_of(p, v->symbols[d]);
    if (port->symbols[d] == 0) return heddle__no_memory(err, "the name of a dimension");
  }
  return HEDDLE_OK;
}

static bool is_open(const heddle__batch_port *port, int32_t axis) {
  return port->ndim == UNKNOWN || port->shape[axis] < 0;
}

/* ---- inputs */

static heddle_status take_options(heddle__batch_port *port, const heddle_batch_port *o, bool is_input,
                                  heddle_error *err) {
  const char *kind = is_input ? "input" : "output";
  const uint32_t ndim = port->ndim == UNKNOWN ? HEDDLE__BATCH_DIMS : port->ndim;
  if (o->axis < -1 || o->axis >= (int32_t)ndim)
    return heddle__fail(err, HEDDLE_EINVAL, "%s '%s' has no dimension %d", kind, port->name, (int)o->axis);
  port->axis = o->axis;
  port->pad_axes = o->pad_axes;
  for (uint32_t d = 0; d < HEDDLE__BATCH_DIMS; d++) {
    if ((o->pad_axes >> d & 1) == 0) continue;
    if (d >= ndim || (int32_t)d == o->axis || (is_input && (o->axis < 0 || !is_open(port, (int32_t)d))))
      return heddle__fail(
          err, HEDDLE_EINVAL,
          "%s '%s': dimension %u cannot be padded; an open dimension of an %s with a batch dimension can", kind,
          port->name, (unsigned)d, kind);
  }
  if (!is_input) return HEDDLE_OK;
  if (o->pad_max < 0)
    return heddle__fail(err, HEDDLE_EINVAL, "input '%s': pad_max is %lld", port->name, (long long)o->pad_max);
  port->pad_value = o->pad_value;
  port->pad_multiple = o->pad_multiple > 0 ? o->pad_multiple : 1;
  port->pad_max = o->pad_max;
  char one[16];
  if (o->pad_axes != 0 && port->dtype.bits != 0 && !heddle__batch_fill(one, 1, port->dtype, o->pad_value))
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "input '%s': its dtype has no value to pad with", port->name);
  return HEDDLE_OK;
}

/* A batch dimension that is open with one input is open with all; a fixed one is the same with all. */
static heddle_status find_batch(heddle__batch_ports *p, heddle_error *err) {
  bool any_open = false;
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    const heddle__batch_port *port = &p->inputs[i];
    if (port->axis >= 0 && is_open(port, port->axis)) any_open = true;
    else if (port->axis >= 0) p->fixed = port->shape[port->axis];
  }
  if (any_open && p->fixed > 0)
    return heddle__fail(err, HEDDLE_EINVAL,
                        "the batch dimension is open with one input and fixed to %lld with another; give their axes",
                        (long long)p->fixed);
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    heddle__batch_port *port = &p->inputs[i];
    if (port->axis == UNDECIDED) {
      port->axis = any_open || port->ndim == 0 ? -1 : 0;
      if (port->axis == 0 && p->fixed == 0) p->fixed = port->shape[0];
    }
    if (port->axis < 0) continue;
    if (!any_open && port->shape[port->axis] != p->fixed)
      return heddle__fail(err, HEDDLE_EINVAL,
                          "the inputs have no batch dimension in common: '%s' has %lld items, others have %lld; give "
                          "their axes",
                          port->name, (long long)port->shape[port->axis], (long long)p->fixed);
    if (p->first_batched == UNKNOWN) p->first_batched = i;
  }
  if (p->first_batched == UNKNOWN || (!any_open && p->fixed < 1))
    return heddle__fail(err, HEDDLE_EINVAL, "no input of the model has a batch dimension");
  return HEDDLE_OK;
}

/* A dimension's name is padded wherever it is an input's. */
static heddle_status check_padding(const heddle__batch_ports *p, heddle_error *err) {
  for (uint32_t i = 0; i < p->n_inputs; i++)
    for (uint32_t d = 0; d < p->inputs[i].ndim && p->inputs[i].ndim != UNKNOWN; d++) {
      const uint32_t symbol = p->inputs[i].symbols[d];
      if (symbol == 0 || (p->inputs[i].pad_axes >> d & 1) == 0) continue;
      for (uint32_t k = 0; k < p->n_inputs; k++)
        for (uint32_t e = 0; e < p->inputs[k].ndim && p->inputs[k].ndim != UNKNOWN; e++)
          if (p->inputs[k].symbols[e] == symbol && (p->inputs[k].pad_axes >> e & 1) == 0)
            return heddle__fail(err, HEDDLE_EINVAL,
                                "dimension '%s' is padded in input '%s', and not in dimension %u of input '%s'",
                                p->symbols[symbol - 1], p->inputs[i].name, (unsigned)e, p->inputs[k].name);
    }
  return HEDDLE_OK;
}

static heddle_status read_inputs(heddle__batch_ports *p, heddle_model *m, heddle_executor *ex,
                                 const heddle_batcher_options *o, heddle_error *err) {
  const uint32_t n = heddle_executor_input_count(ex);
  heddle_status s = HEDDLE_OK;
  p->inputs = heddle__alloc(n, sizeof *p->inputs);
  if (p->inputs == NULL) return heddle__no_memory(err, "a batcher's inputs");
  for (uint32_t i = 0; i < n && s == HEDDLE_OK; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    heddle_value_info v = {.struct_size = sizeof v};
    s = heddle_executor_input_info(ex, i, &info, err);
    if (s == HEDDLE_OK && info.is_param) continue;
    if (s == HEDDLE_OK) s = heddle_graph_input(heddle_model_graph(m), i, &v, err);
    heddle__batch_port *port = &p->inputs[p->n_inputs];
    if (s == HEDDLE_OK) {
      p->n_inputs++;
      s = describe(p, port, i, info.name, &v, err);
    }
    if (s != HEDDLE_OK) break;
    const heddle_batch_port *asks = asked(o->inputs, o->n_inputs, port->name);
    port->axis = port->ndim == UNKNOWN || (port->ndim > 0 && port->shape[0] < 0) ? 0 : UNDECIDED;
    if (asks != NULL) s = take_options(port, asks, true, err);
    p->pads = p->pads || port->pad_axes != 0;
  }
  if (s == HEDDLE_OK) s = find_batch(p, err);
  return s == HEDDLE_OK ? check_padding(p, err) : s;
}

/* ---- outputs */

static bool padded_symbol(const heddle__batch_ports *p, uint32_t symbol, uint32_t *input, uint32_t *axis) {
  for (uint32_t i = 0; i < p->n_inputs; i++)
    for (uint32_t d = 0; d < HEDDLE__BATCH_DIMS; d++)
      if ((p->inputs[i].pad_axes >> d & 1) != 0 && p->inputs[i].symbols[d] == symbol) {
        *input = i, *axis = d;
        return true;
      }
  return false;
}

/* The input that a cut output follows, and its lowest padded dimension. */
static heddle_status follow(const heddle__batch_ports *p, heddle__batch_port *port, const char *name,
                            heddle_error *err) {
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    if (p->inputs[i].pad_axes == 0 || (name != NULL && strcmp(p->inputs[i].name, name) != 0)) continue;
    uint32_t axis = 0;
    while ((p->inputs[i].pad_axes >> axis & 1) == 0) axis++;
    for (uint32_t d = 0; d < HEDDLE__BATCH_DIMS; d++) port->cut_input[d] = i, port->cut_axis[d] = axis;
    return HEDDLE_OK;
  }
  return heddle__fail(err, HEDDLE_EINVAL, "output '%s' cannot be cut: input '%s' is not padded", port->name,
                      name != NULL ? name : "(any)");
}

static heddle_status read_output(heddle__batch_ports *p, heddle__batch_port *port, const heddle_batcher_options *o,
                                 heddle_error *err) {
  const heddle_batch_port *asks = asked(o->outputs, o->n_outputs, port->name);
  if (asks != NULL) {
    heddle_status s = take_options(port, asks, false, err);
    return s == HEDDLE_OK && port->pad_axes != 0 ? follow(p, port, asks->pad_input, err) : s;
  }
  port->axis = -1;
  if (port->ndim == UNKNOWN || (port->ndim > 0 && (port->shape[0] < 0 || port->shape[0] == p->fixed))) port->axis = 0;
  if ((o->flags & HEDDLE_BATCH_KEEP_PADDING) != 0 || port->ndim == UNKNOWN || port->axis < 0) return HEDDLE_OK;
  for (uint32_t d = 1; d < port->ndim; d++)
    if (port->symbols[d] != 0 && padded_symbol(p, port->symbols[d], &port->cut_input[d], &port->cut_axis[d]))
      port->pad_axes |= UINT32_C(1) << d;
  return HEDDLE_OK;
}

static heddle_status read_outputs(heddle__batch_ports *p, heddle_model *m, heddle_executor *ex,
                                  const heddle_batcher_options *o, heddle_error *err) {
  const uint32_t n = heddle_executor_output_count(ex);
  const heddle_graph *g = heddle_model_graph(m);
  heddle_status s = HEDDLE_OK;
  p->outputs = heddle__alloc(n, sizeof *p->outputs);
  if (p->outputs == NULL) return heddle__no_memory(err, "a batcher's outputs");
  for (uint32_t i = 0; i < n && s == HEDDLE_OK; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    heddle_value_info v = {.struct_size = sizeof v};
    const bool declared = i < heddle_graph_output_count(g);
    s = heddle_executor_output_info(ex, i, &info, err);
    if (s == HEDDLE_OK && declared) s = heddle_graph_output(g, i, &v, err);
    if (s != HEDDLE_OK) break;
    p->n_outputs++;
    s = describe(p, &p->outputs[i], i, info.name, declared ? &v : NULL, err);
    if (s == HEDDLE_OK) s = read_output(p, &p->outputs[i], o, err);
  }
  return s;
}

static heddle_status check_names(const heddle__batch_port *ports, uint32_t n, const heddle_batch_port *given,
                                 size_t n_given, const char *kind, heddle_error *err) {
  for (size_t k = 0; k < n_given; k++) {
    uint32_t i = 0;
    while (i < n && strcmp(ports[i].name, given[k].name) != 0) i++;
    if (i == n) return heddle__fail(err, HEDDLE_ENOTFOUND, "the model has no %s '%s'", kind, given[k].name);
  }
  return HEDDLE_OK;
}

heddle_status heddle__batch_ports_read(heddle__batch_ports *p, heddle_model *m, heddle_executor *ex,
                                       const heddle_batcher_options *o, heddle_error *err) {
  p->first_batched = UNKNOWN;
  for (size_t i = 0; i < o->n_inputs + o->n_outputs; i++)
    if ((i < o->n_inputs ? o->inputs[i].name : o->outputs[i - o->n_inputs].name) == NULL)
      return heddle__fail(err, HEDDLE_EINVAL, "a port of the batcher has no name");
  heddle_status s = read_inputs(p, m, ex, o, err);
  if (s == HEDDLE_OK) s = read_outputs(p, m, ex, o, err);
  if (s == HEDDLE_OK) s = check_names(p->inputs, p->n_inputs, o->inputs, o->n_inputs, "input", err);
  return s == HEDDLE_OK ? check_names(p->outputs, p->n_outputs, o->outputs, o->n_outputs, "output", err) : s;
}

static void free_ports(heddle__batch_port *ports, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) heddle__free(ports[i].name);
  heddle__free(ports);
}

void heddle__batch_ports_free(heddle__batch_ports *p) {
  free_ports(p->inputs, p->n_inputs);
  free_ports(p->outputs, p->n_outputs);
  for (uint32_t i = 0; i < p->n_symbols; i++) heddle__free(p->symbols[i]);
  heddle__free(p->symbols);
}
