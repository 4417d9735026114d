// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/worker.h"

#include <gtest/gtest.h>

#include <QTest>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/gui/pyramid_maker.h"
#include "tests/support/event_turns.h"
#include "tests/support/test_application.h"
#include "views/heatmap/heatmap.h"

namespace sinkscope {
namespace {

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() { test_application(); }

  Worker::Job says(const std::string& word) {
    return
        [this, word](const std::stop_token&) { return [this, word] { heard_.push_back(word); }; };
  }
  // Runs until it is asked to stop, then answers.
  Worker::Job waits(const std::string& word) {
    return [this, word](const std::stop_token& stop) {
      has_begun_ = true;
      while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return [this, word] { heard_.push_back(word); };
    };
  }
  Worker::Failed fails() {
    return [this](const std::string& message) { heard_.push_back("failed: " + message); };
  }
  bool hears(std::size_t n) {
    return QTest::qWaitFor([&] { return heard_.size() >= n; }, 5000);
  }
  void wait_for_begin() {
    ASSERT_TRUE(QTest::qWaitFor([&] { return has_begun_.load(); }, 5000));
  }

  std::atomic<bool> has_begun_{false};
  std::vector<std::string> heard_;
  QObject receiver_;
  Worker worker_{receiver_};
};

TEST_F(WorkerTest, AnswersInOrderOnTheReceiversThread) {
  worker_.submit("a", says("one"), fails());
  worker_.submit("b", says("two"), fails());
  EXPECT_TRUE(heard_.empty()) << "nothing is delivered before the event loop turns";
  ASSERT_TRUE(hears(2));
  EXPECT_EQ(heard_, (std::vector<std::string>{"one", "two"}));
}

TEST_F(WorkerTest, ANewerJobOfTheSameTagReplacesTheOldOne) {
  worker_.submit("slow", waits("replaced"), fails());
  wait_for_begin();
  worker_.submit("other", says("other"), fails());
  worker_.submit("slow", says("queued and replaced"), fails());
  worker_.submit("slow", says("newest"), fails());
  ASSERT_TRUE(hears(2));
  QTest::qWait(20);
  EXPECT_EQ(heard_, (std::vector<std::string>{"other", "newest"}));
}

TEST_F(WorkerTest, AStoppedJobStillAnswers) {
  worker_.submit("record", waits("canceled"), fails());
  wait_for_begin();
  worker_.stop("record");
  ASSERT_TRUE(hears(1));
  EXPECT_EQ(heard_.front(), "canceled");
}

TEST_F(WorkerTest, AJobThatIsStoppedWhileItWaitsAnswersToo) {
  worker_.submit("first", waits("first"), fails());
  wait_for_begin();
  worker_.submit("record", waits("canceled"), fails());
  worker_.stop("record");
  worker_.stop("first");
  ASSERT_TRUE(hears(2));
  EXPECT_EQ(heard_, (std::vector<std::string>{"first", "canceled"}));
}

TEST_F(WorkerTest, WhatIsThrownIsSaid) {
  worker_.submit(
      "a",
      [](const std::stop_token&) -> Worker::Deliver { throw std::runtime_error("no such file"); },
      fails());
  ASSERT_TRUE(hears(1));
  EXPECT_EQ(heard_.front(), "failed: no such file");
}

TEST(PyramidMaker, ALargeMapKeepsItsPictureWhileAnotherReductionIsMade) {
  test_application();
  constexpr int kSize = 4096;
  const Grid grid(kSize, kSize, std::vector<float>(std::size_t{kSize} * kSize, 1.0F));
  auto scene = std::make_shared<HeatmapScene>();
  scene->pyramid = Pyramid(grid);
  auto map = std::make_unique<Heatmap>();
  map->resize(600, 500);
  map->show();
  map->setScene(scene);
  settle();
  PyramidMaker maker;
  maker.serve(*map);
  maker.serve(*map);
  const Turns turns;
  const double asking = thread_ms([&] {
    for (const Reduction reduction : {Reduction::min, Reduction::max, Reduction::mean})
      map->setReduction(reduction);
  });
  EXPECT_LT(asking, 5) << "ms; one pyramid takes 15";
  EXPECT_EQ(map->scene()->pyramid.reduction(), Reduction::max_abs) << "the old picture stays";
  ASSERT_TRUE(
      QTest::qWaitFor([&] { return map->scene()->pyramid.reduction() == Reduction::mean; }, 10000))
      << "the newest request wins";
  EXPECT_EQ(map->note().toStdString(), "mean of each pixel");
  EXPECT_GT(turns.n(), 2);
  EXPECT_LT(turns.longest_work(), 50);
  // A map may go before the answer comes.
  map->setReduction(Reduction::max);
  map.reset();
  QTest::qWait(100);
}

}  // namespace
}  // namespace sinkscope
