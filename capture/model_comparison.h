// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <vector>

#include "capture/engine.h"
#include "core/compare/divergence.h"

namespace sinkscope {

// The side of the engine that runs two models on the same tokens.
class ModelComparison {
 public:
  virtual ~ModelComparison() = default;

  // KL(a ‖ b) and the losses of both on the request's runs (it has no variants), in their order. As
  // many prompts together as the activation budget holds; [T, V] never exists. Canceled: nullopt.
  // Throws as Engine::capture does, and Error{invalid_argument} where the heads have not as many
  // tokens.
  virtual std::optional<std::vector<RunDivergence>> compare_models(const ModelFiles& a,
                                                                   const ModelFiles& b,
                                                                   const EvaluateRequest& request,
                                                                   JobContext job) = 0;
};

// That of load_engine(), which it loads; throws what that throws.
ModelComparison& load_model_comparison();

}  // namespace sinkscope
