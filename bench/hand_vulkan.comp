#version 450
// bench/hand_vulkan.comp: c = a + b, four elements an invocation; n is a multiple of four.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint n = 1024;
layout(set = 0, binding = 0) readonly buffer A { vec4 a[]; };
layout(set = 0, binding = 1) readonly buffer B { vec4 b[]; };
layout(set = 0, binding = 2) writeonly buffer C { vec4 c[]; };

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < n / 4) c[i] = a[i] + b[i];
}
