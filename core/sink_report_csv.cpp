// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include "core/number_text.h"
#include "core/sink_report.h"

namespace sinkscope {
namespace {

using Axis = Quantity::Axis;

struct Row {
  std::string quantity;
  std::string layer{}, head{}, site{}, token{}, dim{};  // empty where they mean nothing
  double value = 0;
};

void append(std::string& table, const std::string& run, const Row& row) {
  table += fmt::format("{},{},{},{},{},{},{},{}\n", csv_field(run), row.quantity, row.layer,
                       row.head, csv_field(row.site), row.token, row.dim, csv_number(row.value));
}

Row row_of(const Quantity& q, std::size_t i, const RunReport& run) {
  const auto n_cols = static_cast<std::size_t>(q.cols);
  Row row{.quantity = q.name, .value = q.values[i]};
  switch (q.axis) {
    case Axis::none:
      break;
    case Axis::layer:
      row.layer = std::to_string(run.attention.layers[i]);
      break;
    case Axis::layer_head:
      row.layer = std::to_string(run.attention.layers[i / n_cols]);
      row.head = std::to_string(i % n_cols);
      break;
    case Axis::site:
      row.site = run.residual.sites[i];
      break;
    case Axis::tensor:
      row.site = run.residual.outlier_tensors.names[i];
      break;
  }
  const auto place = [&](int token, int dim) {
    row.token = token < 0 ? "" : std::to_string(token);
    row.dim = dim < 0 ? "" : std::to_string(dim);
  };
  if (q.name == "residual.max_abs")
    place(run.residual.max_abs[i].token, run.residual.max_abs[i].dim);
  if (q.name == "residual.m2" || q.name == "residual.argmax_hit") place(-1, run.residual.m2_dim[i]);
  return row;
}

}  // namespace

std::string sink_report_csv(const SinkReport& report) {
  std::string table = "run,quantity,layer,head,site,token,dim,value\n";
  for (const RunReport& run : report.runs) {
    for (const Quantity& q : quantities(run)) {
      for (std::size_t i = 0; i < q.values.size(); ++i) append(table, run.name, row_of(q, i, run));
    }
    for (const SinkToken& t : run.attention.sink_tokens) {
      const std::string token = std::to_string(t.token);
      append(
          table, run.name,
          {.quantity = "sink_token.heads", .token = token, .value = static_cast<double>(t.heads)});
      append(table, run.name,
             {.quantity = "sink_token.max_score",
              .layer = std::to_string(t.layer),
              .head = std::to_string(t.head),
              .token = token,
              .value = t.max_score});
      append(table, run.name,
             {.quantity = "sink_token.mean_score", .token = token, .value = t.mean_score});
    }
    for (const MassiveActivation& m : run.residual.massive) {
      append(table, run.name,
             {.quantity = "residual.massive",
              .site = m.site,
              .token = std::to_string(m.token),
              .dim = std::to_string(m.dim),
              .value = m.value});
    }
    for (const ResidualSink& s : run.residual.sinks) {
      append(table, run.name,
             {.quantity = "residual.sink",
              .site = s.site,
              .dim = std::to_string(s.dim),
              .value = s.ratio});
    }
  }
  return table;
}

}  // namespace sinkscope
