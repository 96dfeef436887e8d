/* executor/ranks/explain.c: what a plan's text has of the ranks: their devices, the messages between them, and as JSON the acts
 * of all ranks, so that an independent program can check the proof. */
#include "core/sheet.h"
#include "executor/control/stages.h"
#include "executor/ranks/own.h"

static void say_text(const heddle_model *m, heddle__sheet *sheet) {
  const heddle__spread *s = m->spread;
  heddle__say(sheet, "ranks     %u, this is rank %u; %u messages a run\n", (unsigned)s->ranks->comm.size,
              (unsigned)s->ranks->comm.rank, (unsigned)s->script.n_tags);
  for (uint32_t r = 0; r < s->ranks->comm.size; r++) {
    uint32_t stages = 0;
    for (uint32_t k = 0; k < s->script.n_stages; k++) stages += s->stages[k].rank == r;
    heddle__say(sheet, "  rank %u  %u stage%s on", (unsigned)r, (unsigned)stages, stages == 1 ? "" : "s");
    for (uint32_t i = 0; i < s->n_devices; i++)
      if (s->devices[i].rank == r) heddle__say(sheet, " %s", s->devices[i].name);
    heddle__say_text(sheet, "\n");
  }
  for (uint32_t r = 0; r < s->script.n_ranks; r++)
    for (uint32_t i = 0; i < s->script.ranks[r].n; i++) {
      const heddle__act *a = &s->script.ranks[r].list[i];
      if (a->kind == HEDDLE__ACT_SEND)
        heddle__say(sheet, "  link    %s  rank %u -> rank %u  %llu bytes\n", s->names[a->value], (unsigned)r,
                    (unsigned)a->peer, (unsigned long long)a->bytes);
    }
}

static void say_list(heddle__sheet *sheet, const uint32_t *list, uint32_t n) {
  heddle__say_text(sheet, "[");
  for (uint32_t i = 0; i < n; i++) {
    heddle__say_text(sheet, i > 0 ? ", " : "");
    heddle__say_int(sheet, list[i] != HEDDLE__NONE ? (int64_t)list[i] : -1);
  }
  heddle__say_text(sheet, "]");
}

static void say_json(const heddle_model *m, heddle__sheet *sheet) {
  static const char *const kinds[] = {"receive", "await", "stage", "send", "sent"};
  const heddle__spread *s = m->spread;
  heddle__say(sheet, "\"ranks\": {\"count\": %u, \"rank\": %u, \"in_flight\": %u, \"given\": %u, \"results\": ",
              (unsigned)s->ranks->comm.size, (unsigned)s->ranks->comm.rank, (unsigned)m->in_flight,
              (unsigned)s->script.n_given);
  say_list(sheet, s->script.results, s->script.n_results);
  heddle__say_text(sheet, ",\n \"devices\": [");
  for (uint32_t i = 0; i < s->n_devices; i++) {
    heddle__say(sheet, "%s{\"rank\": %u, \"device\": ", i > 0 ? ", " : "", (unsigned)s->devices[i].rank);
    heddle__say_string(sheet, s->devices[i].name);
    heddle__say_text(sheet, "}");
  }
  heddle__say_text(sheet, "],\n \"stages\": [");
  for (uint32_t k = 0; k < s->script.n_stages; k++) {
    heddle__say(sheet, "%s\n  {\"rank\": %u, \"in\": ", k > 0 ? "," : "", (unsigned)s->stages[k].rank);
    say_list(sheet, s->stages[k].in, s->stages[k].n_in);
    heddle__say_text(sheet, ", \"out\": ");
    say_list(sheet, s->stages[k].out, s->stages[k].n_out);
    heddle__say_text(sheet, "}");
  }
  heddle__say_text(sheet, "],\n \"acts\": [");
  for (uint32_t r = 0; r < s->script.n_ranks; r++) {
    heddle__say_text(sheet, r > 0 ? ",\n  [" : "\n  [");
    for (uint32_t i = 0; i < s->script.ranks[r].n; i++) {
      const heddle__act *a = &s->script.ranks[r].list[i];
      heddle__say(sheet, "%s\n   {\"act\": \"%s\", ", i > 0 ? "," : "", kinds[a->kind]);
      if (a->kind == HEDDLE__ACT_STAGE) {
        heddle__say(sheet, "\"stage\": %u}", (unsigned)a->stage);
        continue;
      }
      heddle__say(sheet, "\"peer\": %u, \"tag\": %u, \"value\": %u, \"bytes\": %llu, \"name\": ", (unsigned)a->peer,
                  (unsigned)a->tag, (unsigned)a->value, (unsigned long long)a->bytes);
      heddle__say_string(sheet, s->names[a->value]);
      heddle__say_text(sheet, "}");
    }
    heddle__say_text(sheet, "]");
  }
  heddle__say_text(sheet, "]},\n");
}

void heddle__spread_explain(const heddle_model *m, bool json, heddle__sheet *sheet) {
  if (json) say_json(m, sheet);
  else say_text(m, sheet);
}
