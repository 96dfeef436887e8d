/* tools/described.c: heddle devices --settings. */
#include "described.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool get(heddle_context *ctx, size_t i, heddle_setting_info *out) {
  *out = (heddle_setting_info){.struct_size = sizeof *out};
  return heddle_context_described(ctx, i, out, NULL) == HEDDLE_OK;
}

/* What a setting may be. */
static void range_text(const heddle_setting_info *s, char *out, size_t size) {
  if (strcmp(s->type, "word") == 0) snprintf(out, size, "%s", s->values);
  else if (strcmp(s->type, "switch") == 0) snprintf(out, size, "0,1");
  else if (strcmp(s->type, "number") != 0) snprintf(out, size, "%s", s->type);
  else if (s->high == UINT64_MAX) snprintf(out, size, "%" PRIu64 "..", s->low);
  else snprintf(out, size, "%" PRIu64 "..%" PRIu64, s->low, s->high);
}

void described_print(heddle_context *ctx) {
  heddle_setting_info s;
  for (size_t i = 0; get(ctx, i, &s); i++) {
    char range[160];
    range_text(&s, range, sizeof range);
    print("%-26s  %-10s  %-16s  %s%s\n", s.key, s.default_value[0] != '\0' ? s.default_value : "-", range, s.help,
          s.per_device ? " (also for one device)" : "");
  }
}

json_t *described_json(heddle_context *ctx) {
  heddle_setting_info s;
  json_t *all = json_array();
  for (size_t i = 0; get(ctx, i, &s); i++) {
    const bool is_number = strcmp(s.type, "number") == 0;
    json_t *o = json_pack("{so ss so so sb}", "key", json_words(s.key), "type", s.type, "default",
                          json_words(s.default_value), "help", json_words(s.help), "per_device", s.per_device != 0);
    if (s.values[0] != '\0') json_object_set_new(o, "values", json_words(s.values));
    if (is_number) json_object_set_new(o, "low", json_integer((json_int_t)s.low));
    if (is_number) json_object_set_new(o, "high", json_integer((json_int_t)(s.high > INT64_MAX ? INT64_MAX : s.high)));
    json_array_append_new(all, o);
  }
  return json_pack("{so}", "settings", all);
}
