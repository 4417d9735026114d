// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include "core/mechanism_report.h"
#include "core/number_text.h"
#include "core/sink_report.h"

namespace sinkscope {
namespace {

using Axis = Quantity::Axis;

struct Row {
  std::string quantity;
  std::string layer{}, head{}, site{}, token{}, dim{};  // empty where they mean nothing
  double value = 0;
  std::string text{};  // of a token
};

void append(std::string& table, const std::string& run, const Row& row) {
  table += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_field(run), row.quantity, row.layer,
                       row.head, csv_field(row.site), row.token, row.dim, csv_number(row.value),
                       csv_field(row.text));
}

// Cell i of a quantity, without its value.
Row place_of(const Quantity& q, std::size_t i, const RunReport& run) {
  const auto n_cols = static_cast<std::size_t>(q.cols);
  Row row{.quantity = q.name};
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
  return row;
}

Row row_of(const Quantity& q, std::size_t i, const RunReport& run) {
  Row row = place_of(q, i, run);
  row.value = q.values[i];
  const auto place = [&](int token, int dim) {
    row.token = token < 0 ? "" : std::to_string(token);
    row.dim = dim < 0 ? "" : std::to_string(dim);
  };
  if (q.name == "residual.max_abs")
    place(run.residual.max_abs[i].token, run.residual.max_abs[i].dim);
  if (q.name == "residual.m2" || q.name == "residual.argmax_hit") place(-1, run.residual.m2_dim[i]);
  return row;
}

// What one run and all of them pooled have alike.
void append_dims(std::string& table, const std::string& run, const ResidualReport& r) {
  const auto ranks = [&](const char* quantity, const std::vector<int>& dims) {
    for (std::size_t rank = 0; rank < dims.size(); ++rank)
      append(table, run,
             {.quantity = quantity,
              .dim = std::to_string(dims[rank]),
              .value = static_cast<double>(rank)});
  };
  ranks("residual.sorted_dims", r.sorted_dims);
  ranks("residual.sorted_dims_without_first", r.sorted_dims_without_first);
  for (const ResidualSink& s : r.sinks)
    append(table, run,
           {.quantity = "residual.sink",
            .site = s.site,
            .dim = std::to_string(s.dim),
            .value = s.ratio});
}

void append_tokens(std::string& table, const RunReport& run) {
  for (std::size_t t = 0; t < run.input.token_ids.size(); ++t)
    append(table, run.name,
           {.quantity = "token_id",
            .token = std::to_string(t),
            .value = static_cast<double>(run.input.token_ids[t]),
            .text = run.input.token_text.at(t)});
  for (const SinkToken& t : run.attention.sink_tokens) {
    const std::string token = std::to_string(t.token);
    append(table, run.name,
           {.quantity = "sink_token.heads",
            .token = token,
            .value = static_cast<double>(t.heads),
            .text = t.text});
    append(table, run.name,
           {.quantity = "sink_token.max_score",
            .layer = std::to_string(t.layer),
            .head = std::to_string(t.head),
            .token = token,
            .value = t.max_score,
            .text = t.text});
    append(table, run.name,
           {.quantity = "sink_token.mean_score",
            .token = token,
            .value = t.mean_score,
            .text = t.text});
  }
}

void append_run(std::string& table, const RunReport& run) {
  for (const Quantity& q : quantities(run))
    for (std::size_t i = 0; i < q.values.size(); ++i) append(table, run.name, row_of(q, i, run));
  const GuReport& gu = run.attention.gu;
  const auto number = [&](const char* quantity, double value) {
    append(table, run.name, {.quantity = quantity, .value = value});
  };
  if (!run.attention.layers.empty()) {
    number("attention.gu.epsilon", gu.epsilon);
    number("attention.gu.cells", static_cast<double>(gu.sink_ratio.cells));
    number("attention.gu.cells_above", static_cast<double>(gu.sink_ratio.above));
  }
  number("non_finite_recorded", static_cast<double>(run.residual.non_finite.count));
  const auto index = [](int i) { return i < 0 ? std::string() : std::to_string(i); };
  for (const MechanismRow& m : mechanism_rows(run.mechanisms))
    append(table, run.name,
           {.quantity = m.quantity,
            .layer = index(m.layer),
            .head = index(m.head),
            .site = m.site,
            .dim = index(m.dim),
            .value = m.value});
  append_tokens(table, run);
  for (const MassiveActivation& m : run.residual.massive)
    append(table, run.name,
           {.quantity = "residual.massive",
            .site = m.site,
            .token = std::to_string(m.token),
            .dim = std::to_string(m.dim),
            .value = m.value,
            .text = run.input.token_text.at(static_cast<std::size_t>(m.token))});
  append_dims(table, run.name, run.residual);
  for (const int dim : run.residual.outlier_features)
    append(table, run.name,
           {.quantity = "residual.outlier_feature", .dim = std::to_string(dim), .value = 1});
}

// Rows of run "all": spreads over the runs as NAME.mean, .sd, .min, .max, and what is pooled.
void append_all(std::string& table, const SinkReport& report) {
  const AllRuns& all = report.all;
  for (const SpreadTable& t : all.spreads) {
    for (std::size_t i = 0; i < t.cells.size(); ++i) {
      Row row = place_of(t.shape, i, report.runs.front());
      for (const auto& [suffix, field] : {std::pair{".mean", &Spread::mean},
                                          {".sd", &Spread::sd},
                                          {".min", &Spread::min},
                                          {".max", &Spread::max}}) {
        row.quantity = t.shape.name + suffix;
        row.value = t.cells[i].*field;
        append(table, "all", row);
      }
    }
  }
  const ResidualReport& r = all.residual;
  for (std::size_t s = 0; s < r.m2.size(); ++s) {
    Row row{.quantity = "residual.m2",
            .site = r.sites[s],
            .dim = r.m2_dim[s] < 0 ? "" : std::to_string(r.m2_dim[s]),
            .value = r.m2[s]};
    append(table, "all", row);
    row.quantity = "residual.argmax_hit";
    row.value = r.argmax_hit[s];
    append(table, "all", row);
  }
  append(table, "all",
         {.quantity = "residual.first_permille_ratio", .value = r.first_permille_ratio});
  append(table, "all",
         {.quantity = "residual.first_permille_ratio_without_first",
          .value = r.first_permille_ratio_without_first});
  append_dims(table, "all", r);
  for (const auto& [token, n] : all.runs_with_sink_token)
    append(table, "all",
           {.quantity = "runs_with_sink_token",
            .token = std::to_string(token),
            .value = static_cast<double>(n)});
  for (const auto& [text, n] : all.runs_with_sink_text)
    append(table, "all",
           {.quantity = "runs_with_sink_text", .value = static_cast<double>(n), .text = text});
  const auto dims = [&](const char* quantity, const std::vector<std::pair<int, int>>& counts) {
    for (const auto& [dim, n] : counts)
      append(table, "all",
             {.quantity = quantity, .dim = std::to_string(dim), .value = static_cast<double>(n)});
  };
  dims("residual.runs_with_sink_dim", all.runs_with_sink_dim);
  dims("residual.runs_with_massive_dim", all.runs_with_massive_dim);
}

}  // namespace

std::string sink_report_csv(const SinkReport& report) {
  std::string table = "run,quantity,layer,head,site,token,dim,value,text\n";
  for (const RunReport& run : report.runs) append_run(table, run);
  if (report.runs.size() > 1) append_all(table, report);
  return table;
}

}  // namespace sinkscope
