/* Any bytes as graph JSON: no crash, no leak, and what is read is written, read again and written the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  heddle_graph *g, *again;
  heddle_error err;
  char *text, *second;
  size_t bytes, second_bytes;
  if (heddle_graph_parse((const char *)data, size, "fuzz.json", NULL, &g, &err) != HEDDLE_OK) return 0;
  if (heddle_graph_text(g, &text, &bytes, &err) != HEDDLE_OK) abort();
  if (heddle_graph_parse(text, bytes, "again.json", NULL, &again, &err) != HEDDLE_OK) abort();
  if (heddle_graph_text(again, &second, &second_bytes, &err) != HEDDLE_OK) abort();
  if (bytes != second_bytes || memcmp(text, second, bytes) != 0) abort();
  heddle_value_info value = {.struct_size = sizeof value};
  for (uint32_t i = 0; i < heddle_graph_input_count(g); i++)
    if (heddle_graph_input(g, i, &value, &err) != HEDDLE_OK || value.name == NULL) abort();
  for (uint32_t i = 0; i < heddle_graph_output_count(g); i++)
    if (heddle_graph_output(g, i, &value, &err) != HEDDLE_OK || value.name == NULL) abort();
  heddle_graph_release(g);
  heddle_graph_release(again);
  heddle_free(text);
  heddle_free(second);
  return 0;
}
