/* ort_ep/ort.h: ONNX Runtime's C API for execution providers in libraries, as far as it is used here. The declarations are
 * our own, of version 23 of the API: the order of functions and members is fixed by onnxruntime_c_api.h and
 * onnxruntime_ep_c_api.h of ONNX Runtime 1.23; later versions append. */
#ifndef HEDDLE_ORT_EP_ORT_H
#define HEDDLE_ORT_EP_ORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORT_API_VERSION = 23 };

/* Objects of ONNX Runtime, known by pointer alone. */
typedef struct OrtStatus ort_status;
typedef struct OrtLogger ort_logger;
typedef struct OrtGraph ort_graph;
typedef struct OrtNode ort_node;
typedef struct OrtValueInfo ort_value_info;
typedef struct OrtTypeInfo ort_type_info;
typedef struct OrtTensorTypeAndShapeInfo ort_tensor_info;
typedef struct OrtValue ort_value;
typedef struct OrtOpAttr ort_attr;
typedef struct OrtKernelContext ort_kernel_context;
typedef struct OrtNodeComputeContext ort_compute_context;
typedef struct OrtSessionOptions ort_session_options;
typedef struct OrtKeyValuePairs ort_pairs;
typedef struct OrtHardwareDevice ort_hardware;
typedef struct OrtEpDevice ort_ep_device;
typedef struct OrtEpGraphSupportInfo ort_support;

enum { ORT_FAIL = 1, ORT_INVALID_ARGUMENT = 2, ORT_NOT_IMPLEMENTED = 9, ORT_EP_FAIL = 11 }; /* OrtErrorCode */
enum { ORT_LOG_INFO = 1, ORT_LOG_WARNING = 2 };                                             /* OrtLoggingLevel */
enum { ORT_ELEMENT_STRING = 8 };                                           /* ONNXTensorElementDataType */
enum { ORT_TYPE_TENSOR = 1 };                                              /* ONNXType */
enum { ORT_HARDWARE_CPU = 0, ORT_HARDWARE_GPU = 1, ORT_HARDWARE_NPU = 2 }; /* OrtHardwareDeviceType */

/* OrtOpAttrType. */
enum {
  ORT_ATTR_INT = 1,
  ORT_ATTR_INTS,
  ORT_ATTR_FLOAT,
  ORT_ATTR_FLOATS,
  ORT_ATTR_STRING,
  ORT_ATTR_STRINGS,
  ORT_ATTR_GRAPH,
  ORT_ATTR_TENSOR
};

typedef struct ort_api {
  void (*at[390])(void);
} ort_api;

typedef struct ort_ep_api {
  void (*at[16])(void);
} ort_ep_api;

typedef struct ort_api_base {
  const ort_api *(*get_api)(uint32_t version);
  const char *(*get_version)(void);
} ort_api_base;

/* X(place in OrtApi, name, result, parameters). A status is NULL where the call succeeded. */
#define ORT_FUNCTIONS(X) \
  X(0, CreateStatus, ort_status *, (int code, const char *text)) \
  X(2, GetErrorMessage, const char *, (const ort_status *s)) \
  X(51, GetTensorMutableData, ort_status *, (ort_value * v, void **data)) \
  X(55, CastTypeInfoToTensorInfo, ort_status *, (const ort_type_info *t, const ort_tensor_info **out)) \
  X(56, GetOnnxTypeFromTypeInfo, ort_status *, (const ort_type_info *t, int *out)) \
  X(60, GetTensorElementType, ort_status *, (const ort_tensor_info *t, int *out)) \
  X(61, GetDimensionsCount, ort_status *, (const ort_tensor_info *t, size_t *out)) \
  X(62, GetDimensions, ort_status *, (const ort_tensor_info *t, int64_t *dims, size_t n)) \
  X(63, GetSymbolicDimensions, ort_status *, (const ort_tensor_info *t, const char **names, size_t n)) \
  X(65, GetTensorTypeAndShape, ort_status *, (const ort_value *v, ort_tensor_info **out)) \
  X(90, KernelContext_GetInput, ort_status *, (const ort_kernel_context *c, size_t i, const ort_value **out)) \
  X(91, KernelContext_GetOutput, ort_status *, \
    (ort_kernel_context * c, size_t i, const int64_t *dims, size_t n, ort_value **out)) \
  X(93, ReleaseStatus, void, (ort_status * s)) \
  X(96, ReleaseValue, void, (ort_value * v)) \
  X(99, ReleaseTensorTypeAndShapeInfo, void, (ort_tensor_info * t)) \
  X(247, Logger_LogMessage, ort_status *, \
    (const ort_logger *l, int level, const char *text, const char *file, int line, const char *function)) \
  X(272, ReadOpAttr, ort_status *, (const ort_attr *a, int type, void *data, size_t bytes, size_t *out)) \
  X(289, GetValueInfoName, ort_status *, (const ort_value_info *v, const char **out)) \
  X(290, GetValueInfoTypeInfo, ort_status *, (const ort_value_info *v, const ort_type_info **out)) \
  X(295, CreateKeyValuePairs, void, (ort_pairs * *out)) \
  X(296, AddKeyValuePair, void, (ort_pairs * p, const char *key, const char *value)) \
  X(298, GetKeyValuePairs, void, \
    (const ort_pairs *p, const char *const **keys, const char *const **values, size_t *n)) \
  X(300, ReleaseKeyValuePairs, void, (ort_pairs * p)) \
  X(307, HardwareDevice_Type, int, (const ort_hardware *h)) \
  X(317, GetEpApi, const ort_ep_api *, (void)) \
  X(318, GetTensorSizeInBytes, ort_status *, (const ort_value *v, size_t *out)) \
  X(326, ValueInfo_GetInitializerValue, ort_status *, (const ort_value_info *v, const ort_value **out)) \
  X(330, ValueInfo_IsGraphOutput, ort_status *, (const ort_value_info *v, bool *out)) \
  X(331, ValueInfo_IsConstantInitializer, ort_status *, (const ort_value_info *v, bool *out)) \
  X(335, Graph_GetOnnxIRVersion, ort_status *, (const ort_graph *g, int64_t *out)) \
  X(336, Graph_GetNumOperatorSets, ort_status *, (const ort_graph *g, size_t *out)) \
  X(337, Graph_GetOperatorSets, ort_status *, (const ort_graph *g, const char **domains, int64_t *versions, size_t n)) \
  X(340, Graph_GetNumOutputs, ort_status *, (const ort_graph *g, size_t *out)) \
  X(341, Graph_GetOutputs, ort_status *, (const ort_graph *g, const ort_value_info **out, size_t n)) \
  X(344, Graph_GetNumNodes, ort_status *, (const ort_graph *g, size_t *out)) \
  X(345, Graph_GetNodes, ort_status *, (const ort_graph *g, const ort_node **out, size_t n)) \
  X(346, Graph_GetParentNode, ort_status *, (const ort_graph *g, const ort_node **out)) \
  X(349, Node_GetName, ort_status *, (const ort_node *n, const char **out)) \
  X(350, Node_GetOperatorType, ort_status *, (const ort_node *n, const char **out)) \
  X(351, Node_GetDomain, ort_status *, (const ort_node *n, const char **out)) \
  X(353, Node_GetNumInputs, ort_status *, (const ort_node *n, size_t *out)) \
  X(354, Node_GetInputs, ort_status *, (const ort_node *n, const ort_value_info **out, size_t count)) \
  X(355, Node_GetNumOutputs, ort_status *, (const ort_node *n, size_t *out)) \
  X(356, Node_GetOutputs, ort_status *, (const ort_node *n, const ort_value_info **out, size_t count)) \
  X(359, Node_GetNumAttributes, ort_status *, (const ort_node *n, size_t *out)) \
  X(360, Node_GetAttributes, ort_status *, (const ort_node *n, const ort_attr **out, size_t count)) \
  X(362, OpAttr_GetTensorAttributeAsOrtValue, ort_status *, (const ort_attr *a, ort_value **out)) \
  X(363, OpAttr_GetType, ort_status *, (const ort_attr *a, int *out)) \
  X(364, OpAttr_GetName, ort_status *, (const ort_attr *a, const char **out)) \
  X(365, Node_GetNumSubgraphs, ort_status *, (const ort_node *n, size_t *out)) \
  X(368, Node_GetEpName, ort_status *, (const ort_node *n, const char **out)) \
  X(378, GetTensorData, ort_status *, (const ort_value *v, const void **out)) \
  X(379, GetSessionOptionsConfigEntries, ort_status *, (const ort_session_options *o, ort_pairs **out))

#define ORT_DECLARE(place, name, result, parameters) \
  typedef result(*ort_fn_##name) parameters; \
  enum { ORT_AT_##name = (place) };
ORT_FUNCTIONS(ORT_DECLARE)
#undef ORT_DECLARE

/* ORT(api, GetErrorMessage)(s): a call. */
#define ORT(api, name) ((ort_fn_##name)(api)->at[ORT_AT_##name])

/* OrtNodeFusionOptions. */
typedef struct ort_fusion {
  uint32_t version;
  bool drop_constants; /* constants are no inputs of the fused node */
} ort_fusion;

/* OrtNodeComputeInfo. */
typedef struct ort_compute {
  uint32_t version;
  ort_status *(*create_state)(struct ort_compute *self, ort_compute_context *context, void **state);
  ort_status *(*compute)(struct ort_compute *self, void *state, ort_kernel_context *context);
  void (*release_state)(struct ort_compute *self, void *state);
} ort_compute;

/* OrtEp. Members that are NULL here are optional; those behind the version's last one are not read. */
typedef struct ort_ep {
  uint32_t version;
  const char *(*get_name)(const struct ort_ep *self);
  ort_status *(*get_capability)(struct ort_ep *self, const ort_graph *graph, ort_support *out);
  ort_status *(*compile)(struct ort_ep *self, const ort_graph **graphs, const ort_node **fused, size_t n,
                         ort_compute **out, ort_node **context_nodes);
  void (*release_computes)(struct ort_ep *self, ort_compute **infos, size_t n);
  void (*optional[9])(void); /* from GetPreferredDataLayout to GetCompiledModelCompatibilityInfo, and one more */
} ort_ep;

/* OrtEpFactory. */
typedef struct ort_factory {
  uint32_t version;
  const char *(*get_name)(const struct ort_factory *self);
  const char *(*get_vendor)(const struct ort_factory *self);
  ort_status *(*get_devices)(struct ort_factory *self, const ort_hardware *const *hardware, size_t n,
                             ort_ep_device **out, size_t most, size_t *count);
  ort_status *(*create_ep)(struct ort_factory *self, const ort_hardware *const *hardware,
                           const ort_pairs *const *metadata, size_t n, const ort_session_options *options,
                           const ort_logger *logger, ort_ep **out);
  void (*release_ep)(struct ort_factory *self, ort_ep *ep);
  uint32_t (*get_vendor_id)(const struct ort_factory *self);
  const char *(*get_version)(const struct ort_factory *self);
  ort_status *(*validate)(struct ort_factory *self, const ort_hardware *const *hardware, size_t n, const char *info,
                          int *out);
  ort_status *(*create_allocator)(struct ort_factory *self, const void *memory, const ort_pairs *options, void **out);
  void (*release_allocator)(struct ort_factory *self, void *allocator);
  ort_status *(*create_transfer)(struct ort_factory *self, void **out);
  bool (*is_stream_aware)(const struct ort_factory *self);
  ort_status *(*create_stream)(struct ort_factory *self, const void *memory, const ort_pairs *options, void **out);
  void (*optional[4])(void);
} ort_factory;

/* Functions of OrtEpApi. */
typedef ort_status *(*ort_create_ep_device)(ort_factory *factory, const ort_hardware *hardware,
                                            const ort_pairs *metadata, const ort_pairs *options, ort_ep_device **out);
typedef void (*ort_release_ep_device)(ort_ep_device *device);
typedef ort_status *(*ort_add_nodes)(ort_support *support, const ort_node *const *nodes, size_t n,
                                     const ort_fusion *fusion);
enum { ORT_AT_CREATE_EP_DEVICE = 0, ORT_AT_RELEASE_EP_DEVICE = 1, ORT_AT_ADD_NODES = 2 };

#endif
