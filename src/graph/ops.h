/* All graph ops. */
#ifndef CT_GRAPH_OPS_H
#define CT_GRAPH_OPS_H

#include "graph/along.h"
#include "graph/collectives.h"
#include "graph/compare.h"
#include "graph/constant.h"
#include "graph/control.h"
#include "graph/convert.h"
#include "graph/custom_call.h"
#include "graph/custom_vjp.h"
#include "graph/dot.h"
#include "graph/elementwise.h"
#include "graph/function.h"
#include "graph/gather.h"
#include "graph/graph.h"
#include "graph/manual.h"
#include "graph/memory.h"
#include "graph/random.h"
#include "graph/reduce.h"
#include "graph/remat.h"
#include "graph/shape.h"
#include "graph/slice.h"
#include "graph/softmax.h"
#include "graph/sort.h"

#endif
