/* Asking a plugin about a region, and what an offer may say. */
#include "op_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plugins/common/check/offer.h"

/* The size of the struct that a stranger compiled decides which members are there. */
static void check_offer(op_offers *o, const heddle_poffer *theirs) {
  const heddle_pregion *r = &o->region->region;
  const char *what = NULL;
  heddle_poffer all = {0};
  memcpy(&all, theirs, theirs->struct_size < sizeof all ? theirs->struct_size : sizeof all);
  const heddle_poffer *p = &all;
  if ((p->flags & ~(HEDDLE_OFFER_BARE | HEDDLE_OFFER_RESIZES)) != 0)
    what = "its flags have a bit that is neither BARE nor RESIZES";
  if (p->workspace_bytes > 0 && (p->workspace_align == 0 || (p->workspace_align & (p->workspace_align - 1)) != 0))
    what = "its workspace_align is no power of two";
  if (!(p->cost_ns >= 0) || isinf(p->cost_ns)) what = "its cost_ns is not a time";
  if (p->n_in_place > 0 && p->in_place == NULL) what = "it has pairs in place and in_place is NULL";
  if (p->in_place != NULL && offer_bad_entry(r, p->in_place, p->n_in_place, OFFER_IN_PLACE) < p->n_in_place)
    what = "a pair in place names an input or an output that is not there";
  if (p->n_extends > 0 && p->extends == NULL) what = "it has entries of extends and extends is NULL";
  if (p->extends != NULL && offer_bad_entry(r, p->extends, p->n_extends, OFFER_EXTENDS) < p->n_extends)
    what = "an entry of extends names an input or an output that is not there";
  for (uint32_t i = 0; i < r->n_inputs && p->input_flags != NULL; i++) {
    const heddle_pvalue *v = (const heddle_pvalue *)r->values.data + r->inputs[i];
    if ((p->input_flags[i] & ~(HEDDLE_INPUT_ABSORBED | HEDDLE_INPUT_ROOM)) != 0)
      what = "input_flags has a bit that is neither ABSORBED nor ROOM";
    else if ((p->input_flags[i] & HEDDLE_INPUT_ABSORBED) != 0 && v->data == NULL && v->data_bytes == 0) {
      uint64_t count = 1;
      for (int32_t d = 0; d < v->ndim; d++) count *= (uint64_t)v->shape[d];
      if (count > 0) what = "it absorbs an input whose bytes are not known";
    }
  }
  if (what != NULL && o->wrong[0] == '\0') snprintf(o->wrong, sizeof o->wrong, "offer %u: %s", o->count, what);
}

static heddle_status take_offer(void *sink, const heddle_poffer *p, heddle_error *err) {
  op_offers *o = sink;
  const heddle_pregion *r = &o->region->region;
  const char *fault = offer_fault(p);
  if (fault != NULL) { /* as the core does */
    snprintf(o->wrong, sizeof o->wrong, "the plugin broke the contract of op.query: %s", fault);
    if (err != NULL) err->status = HEDDLE_EABI, snprintf(err->text, sizeof err->text, "%s", o->wrong);
    return HEDDLE_EABI;
  }
  check_offer(o, p);
  if (o->count < OP_OFFERS && o->wrong[0] == '\0') {
    op_offer *to = &o->all[o->count];
    memset(to, 0, sizeof *to);
    to->flags = p->flags;
    to->workspace_bytes = p->workspace_bytes;
    to->workspace_align = p->workspace_align > 0 ? p->workspace_align : 1;
    to->n_in_place = p->n_in_place < 8 ? p->n_in_place : 8;
    for (uint64_t i = 0; i < 2 * to->n_in_place; i++) to->in_place[i] = p->in_place[i];
    for (uint32_t i = 0; i < r->n_inputs && p->input_flags != NULL; i++) to->in_flags[i] = p->input_flags[i];
    for (uint32_t i = 0; i < r->n_inputs && p->input_layouts != NULL; i++) to->in_layouts[i] = p->input_layouts[i];
    for (uint32_t i = 0; i < r->n_outputs && p->output_layouts != NULL; i++) to->out_layouts[i] = p->output_layouts[i];
  }
  o->count++;
  return HEDDLE_OK;
}

heddle_status op_query(kit *k, const op_region *r, op_offers *out) {
  memset(out, 0, offsetof(op_offers, all));
  out->region = r;
  memset(&k->err, 0, sizeof k->err);
  const heddle_status s = k->t.op.query(k->instance, k->index, &r->region, take_offer, out, &k->err);
  if (out->wrong[0] != '\0') return s;
  if (s == HEDDLE_OK && out->count == 0)
    snprintf(out->wrong, sizeof out->wrong, "query returned HEDDLE_OK without an offer");
  if (s != HEDDLE_OK && out->count > 0)
    snprintf(out->wrong, sizeof out->wrong, "query made an offer and then failed with status %d", s);
  return s;
}
