// SPDX-License-Identifier: Apache-2.0
// Isthmus for C++20: header-only over the complete C ABI of isthmus.h.
//
// The basic classes are platform, device, context, queue, event, resource, budget and buffer. Each
// has a header of its name, which may be included alone. All are counted references: copying one is
// cheap and shares the object. Failures are exceptions (error.hpp). All names are in namespace
// `isthmus`, in the inline namespace v1. Typed arrays are views of buffers: see array.hpp and the
// headers that it names, and dyn_array.hpp for dtypes that are known at run time only.
//
// Three headers are separate, because of what they include: host_resource.hpp for standard
// containers, low_level.hpp for functions on bare pointers, and rmm.hpp for RMM.
#pragma once

#include <isthmus/detail/cxx20.hpp>

#include <isthmus/adaptors.hpp>
#include <isthmus/advice.hpp>
#include <isthmus/array.hpp>
#include <isthmus/array_copy.hpp>
#include <isthmus/array_make.hpp>
#include <isthmus/array_print.hpp>
#include <isthmus/axes.hpp>
#include <isthmus/batches.hpp>
#include <isthmus/budget.hpp>
#include <isthmus/buffer.hpp>
#include <isthmus/context.hpp>
#include <isthmus/copy.hpp>
#include <isthmus/copy_2d.hpp>
#include <isthmus/copy_nd.hpp>
#include <isthmus/copy_ranges.hpp>
#include <isthmus/current_resource.hpp>
#include <isthmus/default_pool.hpp>
#include <isthmus/device.hpp>
#include <isthmus/dtype.hpp>
#include <isthmus/dyn_array.hpp>
#include <isthmus/element.hpp>
#include <isthmus/error.hpp>
#include <isthmus/event.hpp>
#include <isthmus/fill.hpp>
#include <isthmus/float16.hpp>
#include <isthmus/host_array.hpp>
#include <isthmus/host_view.hpp>
#include <isthmus/ipc.hpp>
#include <isthmus/layout.hpp>
#include <isthmus/pin.hpp>
#include <isthmus/platform.hpp>
#include <isthmus/pressure.hpp>
#include <isthmus/queue.hpp>
#include <isthmus/resource.hpp>
#include <isthmus/result_memory.hpp>
#include <isthmus/scatter.hpp>
#include <isthmus/scratch.hpp>
#include <isthmus/sim.hpp>
#include <isthmus/slicing.hpp>
#include <isthmus/status.hpp>
#include <isthmus/stream.hpp>
#include <isthmus/submit.hpp>
#include <isthmus/trace.hpp>
#include <isthmus/tracking.hpp>
#include <isthmus/unified_buffer.hpp>
