package redline;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;

@SpringBootApplication
@RestController
public class Petstore {
    record Pet(long id, String name, String tag) {}

    @GetMapping("/v1/pets")
    Flux<Pet> pets() {
        return Flux.just(new Pet(1, "catten", "cat"), new Pet(2, "doggy", "dog"));
    }

    public static void main(String[] args) {
        SpringApplication.run(Petstore.class, args);
    }
}
