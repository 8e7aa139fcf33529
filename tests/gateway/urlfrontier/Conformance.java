import com.google.protobuf.util.JsonFormat;
import crawlercommons.urlfrontier.URLFrontierGrpc;
import crawlercommons.urlfrontier.Urlfrontier.*;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.stub.StreamObserver;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * What the conformance classes of URLFrontier assert, as far as their description says it, by a client that stock
 * tools make of our .proto for Java. The server has to be empty, and each check leaves it so.
 */
public class Conformance {
    interface Check {
        void run() throws Exception;
    }

    static final String HOST = "www.mysite.com";
    static final long FAR = 4_000_000_000L;
    static final JsonFormat.Printer LINES = JsonFormat.printer().omittingInsignificantWhitespace();
    static URLFrontierGrpc.URLFrontierStub stub;
    static URLFrontierGrpc.URLFrontierBlockingStub frontier;

    public static void main(String[] words) throws Exception {
        ManagedChannel channel =
                ManagedChannelBuilder.forAddress(words[0], Integer.parseInt(words[1])).usePlaintext().build();
        stub = URLFrontierGrpc.newStub(channel);
        frontier = URLFrontierGrpc.newBlockingStub(channel).withDeadlineAfter(60, TimeUnit.SECONDS);
        for (int round = 0; round < 2; round++) {
            check("never fetched again", Conformance::neverAgain);
            check("right order", Conformance::rightOrder);
            check("updates", Conformance::updates);
            check("names of queues", Conformance::namesOfQueues);
            check("ids of crawls", Conformance::idsOfCrawls);
            check("dump and import", () -> dumpAndImport(1));
            check("dump of queues and import", () -> dumpAndImport(2));
            check("dump by four threads", Conformance::dumpOfManyQueues);
        }
        channel.shutdownNow();
    }

    static void check(String name, Check check) throws Exception {
        same(List.of(), crawls());
        check.run();
        for (String crawl : crawls()) frontier.deleteCrawl(DeleteCrawlMessage.newBuilder().setValue(crawl).build());
        System.out.println(name);
    }

    static void neverAgain() throws Exception {
        same(1, put(known("http://key1.com/", "key1.com", 0)).size());
        same(List.of(), get("key1.com", 2));
        same(0L, deleteQueue("key1.com"));
    }

    static void rightOrder() throws Exception {
        long now = Instant.now().getEpochSecond();
        for (long[] dates : new long[][] {{10, 1}, {now, now - 1}}) {
            put(known("http://key1.com/a", "key1.com", dates[0]), known("http://key1.com/b", "key1.com", dates[1]));
            same(List.of("http://key1.com/b", "http://key1.com/a"), get("key1.com", 2));
            same(2L, deleteQueue("key1.com"));
        }
    }

    static void updates() throws Exception {
        String url = "https://" + HOST + "/life";
        same(2, put(found(url, ""), found(url, "")).size());
        same(List.of(HOST), frontier.listQueues(Pagination.getDefaultInstance()).getValuesList());
        same(List.of(url), get(HOST, 2));
        long held = System.nanoTime();
        Stats stats = stats(HOST, "");
        same(List.of(1, 1L, 1L), List.of(stats.getInProcess(), stats.getNumberOfQueues(), stats.getSize()));
        same(List.of(), get(HOST, 2));
        TimeUnit.NANOSECONDS.sleep(2_000_000_000L - (System.nanoTime() - held));
        same(0, stats(HOST, "").getInProcess());
        same(1L, deleteQueue(HOST));
        same(0L, stats("", "").getNumberOfQueues());
    }

    static void namesOfQueues() throws Exception {
        put(found("http://gac.icann.org?language_id=9", ""));
        same(List.of("gac.icann.org"), frontier.listQueues(Pagination.getDefaultInstance()).getValuesList());
        same(1L, stats("gac.icann.org", "").getSize());
    }

    static void idsOfCrawls() throws Exception {
        String url = "https://" + HOST + "/";
        for (String crawl : List.of("BESPOKE", "", "DEFAULT")) put(found(url, crawl));
        same(List.of("BESPOKE", "DEFAULT"), crawls());
        for (String crawl : List.of("BESPOKE", "", "DEFAULT")) {
            Stats stats = stats("", crawl);
            same(List.of(1L, 1L, crawl.isEmpty() ? "DEFAULT" : crawl),
                    List.of(stats.getSize(), stats.getNumberOfQueues(), stats.getCrawlID()));
        }
        for (String crawl : List.of("BESPOKE", "")) {
            same(1L, frontier.deleteCrawl(DeleteCrawlMessage.newBuilder().setValue(crawl).build()).getValue());
            same(0L, stats("", crawl).getSize());
        }
    }

    static void dumpAndImport(int threads) throws Exception {
        DiscoveredURLItem.Builder noted = found("https://a.example/1", "").toBuilder().getDiscoveredBuilder();
        StringList values = StringList.newBuilder().addValues("x").addValues("y \u2028 ü").build();
        noted.getInfoBuilder().putMetadata("meta", values);
        put(URLItem.newBuilder().setDiscovered(noted).build(), known("https://a.example/done", "", 0),
                known("https://b.example/later", "", FAR), found("https://c.example/other", "BESPOKE"));
        List<String> lines = dumped(threads);
        same(4, lines.size());
        for (String crawl : crawls()) frontier.deleteCrawl(DeleteCrawlMessage.newBuilder().setValue(crawl).build());
        same(List.of(), crawls());
        List<URLItem> items = new ArrayList<>();
        for (String line : lines) {
            URLItem.Builder item = URLItem.newBuilder();
            JsonFormat.parser().merge(line, item);
            same(true, item.hasKnown() && item.getCreationDate() > 0);
            items.add(item.build());
        }
        for (AckMessage ack : put(items.toArray(new URLItem[0]))) same(AckMessage.Status.OK, ack.getStatus());
        same(0L, status("https://a.example/done").getRefetchableFromDate());
        same(FAR, status("https://b.example/later").getRefetchableFromDate());
        same(values, status("https://a.example/1").getInfo().getMetadataMap().get("meta"));
        same(1L, frontier.countURLs(CountUrlParams.newBuilder().setCrawlID("BESPOKE").build()).getValue());
    }

    static void dumpOfManyQueues() throws Exception {
        URLItem[] items = new URLItem[21];
        for (int number = 0; number < items.length; number++) {
            items[number] = found("https://host" + number % 11 + ".example/" + number, "");
        }
        put(items);
        same(21, Set.copyOf(dumped(4)).size());
        same(11L, stats("", "").getNumberOfQueues());
    }

    // calls

    static URLItem found(String url, String crawl) {
        URLInfo info = URLInfo.newBuilder().setUrl(url).setCrawlID(crawl).build();
        return URLItem.newBuilder().setDiscovered(DiscoveredURLItem.newBuilder().setInfo(info)).build();
    }

    static URLItem known(String url, String key, long date) {
        URLInfo info = URLInfo.newBuilder().setUrl(url).setKey(key).build();
        KnownURLItem.Builder item = KnownURLItem.newBuilder().setInfo(info).setRefetchableFromDate(date);
        return URLItem.newBuilder().setKnown(item).build();
    }

    static List<AckMessage> put(URLItem... items) throws Exception {
        List<AckMessage> acks = new ArrayList<>();
        List<Throwable> problems = new ArrayList<>();
        CountDownLatch ended = new CountDownLatch(1);
        StreamObserver<URLItem> sending = stub.putURLs(new StreamObserver<AckMessage>() {
            @Override
            public void onNext(AckMessage ack) {
                acks.add(ack);
            }

            @Override
            public void onError(Throwable problem) {
                problems.add(problem);
                ended.countDown();
            }

            @Override
            public void onCompleted() {
                ended.countDown();
            }
        });
        for (URLItem item : items) sending.onNext(item);
        sending.onCompleted();
        same(true, ended.await(30, TimeUnit.SECONDS));
        same(List.of(), problems);
        same(items.length, acks.size());
        return acks;
    }

    static List<String> get(String key, int leaseS) {
        GetParams wanted = GetParams.newBuilder().setKey(key).setCrawlID("DEFAULT").setDelayRequestable(leaseS).build();
        List<String> urls = new ArrayList<>();
        frontier.getURLs(wanted).forEachRemaining(info -> urls.add(info.getUrl()));
        return urls;
    }

    static Stats stats(String key, String crawl) {
        return frontier.getStats(QueueWithinCrawlParams.newBuilder().setKey(key).setCrawlID(crawl).build());
    }

    static long deleteQueue(String key) {
        return frontier.deleteQueue(QueueWithinCrawlParams.newBuilder().setKey(key).build()).getValue();
    }

    static KnownURLItem status(String url) {
        return frontier.getURLStatus(URLStatusRequest.newBuilder().setUrl(url).build()).getKnown();
    }

    static List<String> crawls() {
        Local here = Local.newBuilder().setLocal(true).build();
        return new ArrayList<>(new TreeSet<>(frontier.listCrawls(here).getValuesList()));
    }

    /** One thread takes each crawl whole, several share its queues. */
    static List<String> dumped(int threads) throws Exception {
        List<ListUrlParams> wanted = new ArrayList<>();
        for (String crawl : crawls()) {
            Pagination all = Pagination.newBuilder().setCrawlID(crawl).setIncludeInactive(true).setSize(10_000).build();
            List<String> keys = threads == 1 ? List.of("") : frontier.listQueues(all).getValuesList();
            for (String key : keys) {
                wanted.add(ListUrlParams.newBuilder().setCrawlID(crawl).setKey(key).setSize(Integer.MAX_VALUE).build());
            }
        }
        Queue<String> lines = new ConcurrentLinkedQueue<>();
        var working = Executors.newFixedThreadPool(threads);
        var work = wanted.stream().map(one -> Executors.callable(() -> list(one, lines))).toList();
        for (var done : working.invokeAll(work)) done.get();
        working.shutdown();
        return new ArrayList<>(lines);
    }

    static void list(ListUrlParams wanted, Queue<String> lines) {
        Iterator<URLItem> items = frontier.listURLs(wanted);
        try {
            while (items.hasNext()) lines.add(LINES.print(items.next()));
        } catch (com.google.protobuf.InvalidProtocolBufferException problem) {
            throw new IllegalStateException(problem);
        }
    }

    static void same(Object expected, Object seen) {
        if (!expected.equals(seen)) throw new AssertionError("expected " + expected + ", got " + seen);
    }
}
